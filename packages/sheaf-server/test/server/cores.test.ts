import assert from "node:assert/strict";
import { test } from "node:test";
import { threadsPerWorker, usableCores } from "../../dist/server/models/cores.js";

test("workers share the cores, each has one thread at least, and WORKER_THREADS overrides that", () => {
  const threads = (workers: number, cores: number, workerThreads?: number): number =>
    threadsPerWorker({ workers, workerThreads }, cores);
  assert.deepEqual([threads(1, 8), threads(2, 8), threads(3, 8), threads(16, 8)], [8, 4, 2, 1]);
  assert.equal(threads(1, 8, 3), 3);
});

test("a container's quota of CPU counts, not the machine's cores", () => {
  assert.equal(usableCores(64, "150000 100000\n"), 2);
  assert.equal(usableCores(64, "50000 100000\n"), 1);
  assert.equal(usableCores(4, "800000 100000\n"), 4);
  assert.equal(usableCores(64, "max 100000\n"), 64);
  assert.equal(usableCores(64, undefined), 64);
  assert.equal(usableCores(64, "nonsense"), 64);
});
