// examples/ai-sdk needs the AI SDK, which only this folder installs: run as its reader runs it, from a copy in here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));

test("examples/ai-sdk: 200 embed() calls become a few requests, as it claims", async (t) => {
  const folder = await mkdtemp(pathOf("node_modules/.example-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(pathOf("../../examples/ai-sdk"), folder, { recursive: true });
  const { stdout } = await promisify(execFile)(process.execPath, ["main.mjs"], { cwd: folder, timeout: 600_000 });
  assert.match(stdout, /^200 embed\(\) calls, \d requests/);
});
