import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("./without-handles.js", import.meta.url));

for (const kind of ["thread", "process"]) {
  test(`a ${kind} that dies when no file handle is left is replaced once there are some again`, () => {
    const run = spawnSync("sh", ["-c", `ulimit -n 80 && exec "${process.execPath}" "${program}" ${kind}`], {
      encoding: "utf8",
      timeout: 60_000,
    });
    assert.equal(run.stderr, "");
    assert.deepEqual([run.stdout.trim(), run.status], ["WORKER_CRASHED 42", 0]);
  });
}
