// examples/langchain-ollama needs LangChain, which only this folder installs: run as its reader runs it, from a copy in here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));

test("examples/langchain-ollama: 64 questions at once become a few runs, with /v1/embeddings' vectors", async (t) => {
  const folder = await mkdtemp(pathOf("node_modules/.example-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(pathOf("../../examples/langchain-ollama"), folder, { recursive: true });
  const { stdout } = await promisify(execFile)("npm", ["start", "--silent"], { cwd: folder, timeout: 600_000 });
  t.diagnostic(stdout.trim());
  assert.match(stdout, /^64 questions in \d+ runs, 64 with the right passage; same vectors as \/v1\/embeddings$/m);
});
