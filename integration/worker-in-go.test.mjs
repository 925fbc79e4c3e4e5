// examples/worker-in-go, run as its reader runs it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildGoIn, skipWithoutGo } from "./lib/go.mjs";

const folder = fileURLToPath(new URL("../examples/worker-in-go", import.meta.url));

test(
  "a worker in Go runs batches, fails one item alone, and keeps every promise of the protocol",
  { skip: skipWithoutGo },
  async () => {
    buildGoIn(folder, `${folder}/dist/worker`);
    const { stdout } = await promisify(execFile)(process.execPath, ["main.mjs"], { cwd: folder, timeout: 600_000 });
    assert.match(
      stdout,
      /^1000 texts counted in \d+ batches\n2 a text without words\n19 promises of the worker protocol kept\n$/,
    );
  },
);
