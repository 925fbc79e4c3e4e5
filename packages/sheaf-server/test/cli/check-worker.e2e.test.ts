import assert from "node:assert/strict";
import { test } from "node:test";
import { checkWorker } from "../../dist/cli/check-worker.js";
import { collected } from "../load/streams.js";

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const streams = collected();
  const code = await checkWorker(args, streams);
  return { code, out: streams.out(), err: streams.err() };
}

test("a program that is not a worker breaks the first promise: exit 3, and nothing else is tried", async () => {
  const { code, out } = await run(process.execPath, "-e", "console.error('not me'); process.exit(4)");
  assert.equal(code, 3);
  assert.equal(
    out,
    "FAILED says what it takes and returns, once it is ready: it ended (exit code 4): not me\n\n1 failed.\n",
  );
});

test("what follows the command belongs to it, and --json prints a line for each promise", async () => {
  const script = "console.error(process.argv[1]); process.exit(1)";
  const { code, out } = await run("--json", process.execPath, "-e", script, "--json");
  assert.equal(code, 3);
  assert.match((JSON.parse(out) as { detail: string }).detail, /exit code 1|bad option/);
});

test("a wrong use is exit 2 and says what is wrong", async () => {
  assert.equal((await run()).code, 2);
  const { code, err } = await run("--data", "{", "node");
  assert.equal(code, 2);
  assert.match(err, /--data must be JSON, got \{/);
});

test("a program that cannot be started is a broken promise", async () => {
  const { code, out } = await run("/nowhere/worker");
  assert.equal(code, 3);
  assert.match(out, /FAILED says what it takes .*ENOENT/);
});
