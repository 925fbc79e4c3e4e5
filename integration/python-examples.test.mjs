// The examples in Python, each checked against the worker protocol; those that need libraries, served and asked as well.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { checksOf } from "./lib/check-worker.mjs";
import { pythonWithClients, skipWithoutPython } from "./lib/python.mjs";
import { skipWithoutTorch, withTorch } from "./lib/torch.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

async function run(example, python) {
  const path = `${root}node_modules/.bin:${process.env.PATH}`;
  const env = { ...process.env, PATH: path, PYTHON: python };
  const options = { cwd: `${root}${example}`, env, timeout: 600_000 };
  return (await promisify(execFile)(process.execPath, ["try.mjs"], options)).stdout;
}

// `npm run prove -- workers` checks every promise: that starts each of them twenty times.
for (const [example, python, skip] of [
  ["python", () => "python3", skipWithoutPython],
  ["python-scikit-learn", pythonWithClients, skipWithoutPython],
  ["pytorch", () => withTorch, skipWithoutTorch],
])
  test(`examples/${example} starts without data and answers batches, as the worker protocol promises`, { skip }, async () => {
    const checks = [];
    for await (const check of checksOf(example, python(), "model.py")) if (checks.push(check) === 2) break;
    assert.deepEqual(checks.filter(({ ok }) => !ok), []);
    assert.match(checks[1].name, /^answers batches of 1, 2, 7 and 64 items/);
  }); // prettier-ignore

test("examples/python-scikit-learn reads a digit", { skip: skipWithoutPython }, async () => {
  assert.match(await run("examples/python-scikit-learn", pythonWithClients()), /^\{ digit: 1, share: 0\.\d+ \}\n$/);
});

test("examples/pytorch gives ten shares for an image", { skip: skipWithoutTorch }, async () => {
  assert.equal((await run("examples/pytorch", withTorch)).match(/0\.\d+/g)?.length, 10);
});
