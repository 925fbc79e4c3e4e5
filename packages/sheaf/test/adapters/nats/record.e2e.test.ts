import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, greedy } from "../../../dist/index.js";
import { readRecords } from "../../../dist/internal/tuning.js";
import { recordCalls } from "../../../dist/tuning/index.js";
import { Rig, needsNats, numbers, until } from "./rig.js";

const rig = new Rig();

test(
  "the records of two front ends hold every run of their worker once, with its size, and every call",
  needsNats,
  async () => {
    const queue = rig.newQueue();
    const run = async (items: number[]): Promise<(number | Error)[]> => {
      await new Promise((resolve) => setTimeout(resolve, 5 + items.length));
      return items.map((item) => (item === 7 ? new Error("a planted reason") : item));
    };
    const options = { policy: greedy(), maxBatchSize: 8, concurrency: 1, maxWaitMs: 3 };
    const batcher = createBatcher<number, number>(run, options);
    const ran: number[] = [];
    batcher.subscribe(({ size }) => void ran.push(size));
    const { worker } = await rig.serve(queue, batcher);
    await worker.ready();
    // The items of tenants wait for their turn before they are published.
    const fronts = [
      await rig.frontEnd<number, number>(queue, { timeoutMs: 9000 }),
      await rig.frontEnd<number, number>(queue, { timeoutMs: 9000, fairKey: (item) => `planted ${item % 2}` }),
    ];
    await Promise.all(fronts.map((front) => front.ready()));
    const files: string[][] = [[], []];
    const ends = fronts.map((front, i) => recordCalls(front, (line) => files[i]!.push(line)));
    const calls = fronts.flatMap((front) => [
      ...numbers(100).map((item) => front(item)),
      ...numbers(20).map((item) => front(item + 100, { priority: "bulk", timeoutMs: 8000 })),
    ]);
    const failed = (await Promise.allSettled(calls)).filter(({ status }) => status === "rejected");
    await worker.drain();
    await until(() => fronts.every((front) => front.workers().length === 0), "they know that it has gone");
    for (const end of ends) end();
    assert.equal(failed.length, 2);

    const { calls: recorded, runs, settings } = (await readRecords(files)).get(queue)!;
    const sorted = (sizes: readonly number[]): number[] => sizes.toSorted((a, b) => a - b);
    assert.deepEqual(sorted(runs.map(({ size }) => size)), sorted(ran));
    assert.ok(ran.some((size) => size === 8));
    assert.equal(recorded.count, calls.length, "those that failed too");
    assert.deepEqual([recorded.lane.filter((lane) => lane === 2).length, recorded.timeoutMs.filter((ms) => ms === 8000).length], [40, 40]); // prettier-ignore
    assert.ok(recorded.timeoutMs.every((ms) => ms === 8000 || ms === 9000));
    assert.ok(recorded.endMs.every((endMs, call) => endMs > recorded.atMs[call]!));
    // All came at once: nothing of the wait for a turn is lost.
    assert.ok(recorded.atMs.at(-1)! < Math.min(...recorded.endMs));
    const { policy, maxBatchSize, concurrency, maxWaitMs, timeoutMs } = settings!;
    assert.deepEqual([policy, maxBatchSize, concurrency, maxWaitMs, timeoutMs], ["greedy", 8, 1, 3, 9000]);
    const shared = files.map((lines) => lines.filter((line) => line.includes('"size":8')).length);
    assert.ok(shared.every((count) => count > 0));
    assert.equal(files.flat().join("\n").includes("planted"), false);
  },
);
