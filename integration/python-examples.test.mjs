// The examples in Python that need libraries, each served and asked as its reader does.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pythonWithClients, skipWithoutPython } from "./lib/python.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** A Python that can import PyTorch: that of the environment, else Debian's. */
const withTorch = ["python3", "/usr/bin/python3"].find(
  (python) => spawnSync(python, ["-c", "import torch, numpy"]).status === 0,
);
const skipWithoutTorch = withTorch === undefined ? absent() : false;

function absent() {
  const message = "PyTorch is not installed (apt-get install python3-torch): examples/pytorch is not tested";
  if (process.env.CI === "true") throw new Error(message);
  console.error(`SKIPPED: ${message}`);
  return message;
}

async function run(example, python) {
  const path = `${root}node_modules/.bin:${process.env.PATH}`;
  const env = { ...process.env, PATH: path, PYTHON: python };
  const options = { cwd: `${root}${example}`, env, timeout: 180_000 };
  return (await promisify(execFile)(process.execPath, ["try.mjs"], options)).stdout;
}

test("examples/python-scikit-learn reads a digit", { skip: skipWithoutPython }, async () => {
  assert.match(await run("examples/python-scikit-learn", pythonWithClients()), /^\{ digit: 1, share: 0\.\d+ \}\n$/);
});

test("examples/pytorch gives ten shares for an image", { skip: skipWithoutTorch }, async () => {
  assert.equal((await run("examples/pytorch", withTorch)).match(/0\.\d+/g)?.length, 10);
});
