import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("./without-handles.js", import.meta.url));

for (const kind of ["thread", "process"]) {
  test(`a ${kind} that dies when no file handle is left is replaced once there are some again`, () => {
    assert.deepEqual(underLimit(kind, "exit"), ["WORKER_CRASHED 42", 0]);
  });

  test(`a batch whose ${kind} dies when no file handle is left is run again once there are some`, () => {
    assert.deepEqual(underLimit(kind, "survive"), ["survived 42", 0]);
  });
}

function underLimit(kind: string, batch: string): [string, number | null] {
  const run = spawnSync("sh", ["-c", `ulimit -n 80 && exec "${process.execPath}" "${program}" ${kind} ${batch}`], {
    encoding: "utf8",
    timeout: 300_000,
  });
  // A busy machine may take its time over a new process, of which the batcher warns.
  assert.equal(run.stderr.replaceAll(/^batcher: no progress for .*\n/gm, ""), "");
  return [run.stdout.trim(), run.status];
}
