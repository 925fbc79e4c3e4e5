// The examples in Python that need libraries, served and asked.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pythonWithClients, skipWithoutPython } from "./lib/python.mjs";
import { skipWithoutTorch, withTorch } from "./lib/torch.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

async function run(example, python) {
  const path = `${root}node_modules/.bin:${process.env.PATH}`;
  const env = { ...process.env, PATH: path, PYTHON: python };
  const options = { cwd: `${root}${example}`, env, timeout: 600_000 };
  return (await promisify(execFile)(process.execPath, ["try.mjs"], options)).stdout;
}

test("examples/python-scikit-learn reads a digit", { skip: skipWithoutPython }, async () => {
  assert.match(await run("examples/python-scikit-learn", pythonWithClients()), /^\{ digit: 1, share: 0\.\d+ \}\n$/);
});

test("examples/pytorch gives ten shares for an image", { skip: skipWithoutTorch }, async () => {
  assert.equal((await run("examples/pytorch", withTorch)).match(/0\.\d+/g)?.length, 10);
});
