import assert from "node:assert/strict";
import { test } from "node:test";
import { threadsPerWorker } from "../../dist/server/models/cores.js";

test("workers share the cores, each has one thread at least, and WORKER_THREADS overrides that", () => {
  const threads = (workers: number, cores: number, workerThreads?: number): number =>
    threadsPerWorker({ workers, workerThreads }, cores);
  assert.deepEqual([threads(1, 8), threads(2, 8), threads(3, 8), threads(16, 8)], [8, 4, 2, 1]);
  assert.equal(threads(1, 8, 3), 3);
});
