// A worker takes from every lane, and its batcher gives each its turns as it does in one process.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Policy } from "../../../dist/index.js";
import { Rig, needsNats, until } from "./rig.js";

const rig = new Rig();

const bulk = { priority: "bulk" } as const;
/** As short as a run of bulk beside live calls. */
const oneByOne: Policy = { name: "one", decide: () => ({ run: 1 }) };

test("a live item waits for one run of bulk, and not for all that its worker has taken", needsNats, async () => {
  const entered: number[] = [];
  let next: (() => void) | undefined;
  const run = async (items: number[]): Promise<number[]> => {
    entered.push(...items);
    await new Promise<void>((resolve) => (next = resolve));
    return items;
  };
  const { front } = await rig.pair(run, {}, { maxBatchSize: 32, policy: oneByOne });
  const calls = Array.from({ length: 100 }, (_, i) => front(i + 1, bulk));
  const runOne = async (): Promise<void> => {
    const before = entered.length;
    next!();
    await until(() => entered.length > before, "the next run");
  };
  await until(() => entered.length > 0, "bulk runs");
  for (const item of [-1, -2, -3]) {
    // The live item before it runs until `next`.
    const running = item === -1 ? 0 : 1;
    calls.push(front(item));
    await until(async () => {
      const [, live, ofBulk] = await front.figures();
      if (live!.ackPending === running + 1) return true;
      // A worker that holds nothing ahead asks for more once its run has ended.
      return live!.pending === 1 && ofBulk!.ackPending <= 1;
    }, "the worker has it, or will take it next");
    const from = entered.length;
    while (!entered.includes(item)) await runOne();
    // It was on its way from the connection to the batcher while a run or two began.
    assert.ok(entered.length - from <= 3, `${entered.length - from} runs until ${item} ran`);
  }
  while (entered.length < calls.length) await runOne();
  next!();
  await Promise.all(calls);
});

test("beside more live items than it can run a worker gives bulk its floor, and no more", needsNats, async () => {
  const order: number[] = [];
  const run = async (items: number[]): Promise<number[]> => {
    order.push(...items);
    await sleep(10 + items.length);
    return items;
  };
  const { front } = await rig.pair(run, {}, { maxBatchSize: 32 });
  let isOver = false;
  const caller = async (item: number): Promise<void> => {
    while (!isOver) await front(item, item > 0 ? bulk : {});
  };
  const callers = Array.from({ length: 200 }, () => [caller(1), caller(-1)]).flat();
  await until(() => order.length > 2000, "items run");
  isOver = true;
  await Promise.all(callers);
  const bulkItems = order.slice(500, 2000).filter((item) => item > 0).length;
  assert.ok(bulkItems > 0, "bulk moves");
  assert.ok(bulkItems < 400, `${bulkItems} of 1500 items were bulk`);
});
