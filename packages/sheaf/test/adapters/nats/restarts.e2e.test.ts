import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { assertResult } from "../../../../../test/support/result.mjs";
import { Rig, needsNats, tokenOf, until } from "./rig.js";

const rig = new Rig();

test(
  "NATS is killed and restarted five times under load: every accepted item is answered and leaves the queue",
  needsNats,
  async () => {
    const queue = rig.newQueue();
    // Nothing leaves the queue by its age.
    const options = { ackWaitMs: 2000, maxAgeMs: 600_000 };
    const fronts = [
      await rig.frontEnd<number, number>(queue, options),
      await rig.frontEnd<number, number>(queue, options),
    ];
    const run = async (items: number[]): Promise<number[]> => {
      await sleep(5);
      return items.map((item) => item * 2);
    };
    await rig.worker(queue, run, { ...options, maxBatchSize: 4 });
    await rig.worker(queue, run, { ...options, maxBatchSize: 4 });
    await Promise.all(fronts.map((front) => front.ready()));

    let isLoaded = true;
    const refusals: string[] = [];
    const calls: Promise<void>[] = [];
    const load = async (): Promise<void> => {
      for (let item = 0; isLoaded; item++) {
        const call = fronts[item % 2]!(item).then(
          (value) => assertResult(value, 2 * item),
          (error: Error) => void refusals.push(error.message),
        );
        calls.push(call);
        await sleep(2);
      }
    };
    const loading = load();
    const answered = (): number => fronts.reduce((sum, front) => sum + front.stats().items.ok, 0);
    for (let restart = 0; restart < 5; restart++) {
      const before = answered();
      await until(() => answered() > before + 20, "items are answered");
      await rig.nats.restart();
      await until(() => fronts.every((front) => front.isConnected), "the front ends are connected again");
    }
    isLoaded = false;
    await loading;
    await Promise.all(calls);
    // Of these callers know that nothing was accepted, or that nobody knows.
    const known = /connection to NATS (is|went) down|has no such queue yet|did not confirm the item/;
    assert.deepEqual(refusals.filter((message) => !known.test(message)), []); // prettier-ignore
    const stream = `STREAM.INFO.SHEAF_${tokenOf(queue)}`;
    await until(async () => (await rig.api(stream)).state.messages === 0, "no answered item holds a place");
  },
);
