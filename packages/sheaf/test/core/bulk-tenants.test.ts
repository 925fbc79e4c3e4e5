import assert from "node:assert/strict";
import { test } from "node:test";
import { type BatcherOptions, createBatcher } from "../../dist/index.js";
import { virtualClock } from "../../dist/testing/index.js";

interface Item {
  readonly tenant: "large" | "small" | "live";
}

const ways = ["calls", "many", "map"] as const;
const settings: [string, BatcherOptions<Item, Item>][] = [
  ["", {}],
  [", with groups", { groupKey: ({ tenant }) => tenant }],
  [", with weights", { weigh: () => 3 }],
  [", with a rate limit", { rateLimit: { items: 200, perMs: 1000 } }],
  [", with room for a tenth", { maxQueueSize: 900 }],
];

for (const way of ways)
  for (const [what, options] of settings)
    test(`a tenant's bulk by ${way} waits for no more of another's backlog than for as many items${what}`, async () => {
      const clock = virtualClock();
      const ran: Item[] = [];
      const run = async (items: Item[]): Promise<Item[]> => {
        await clock.sleep(10 + 2 * items.length);
        ran.push(...items);
        return items;
      };
      const batcher = createBatcher(run, {
        concurrency: 1,
        maxBatchSize: 32,
        maxQueueSize: 20_000,
        fairKey: ({ tenant }) => tenant,
        clock,
        ...options,
      });
      const stop = new AbortController();
      const bulk = { priority: "bulk", signal: stop.signal } as const;
      const send = async (tenant: Item["tenant"], count: number): Promise<void> => {
        const items = Array.from({ length: count }, () => ({ tenant }));
        if (way === "many") await batcher.many(items, bulk);
        else if (way === "map") for await (const _ of batcher.map(items, bulk));
        else await Promise.all(items.slice(0, 700).map((item) => batcher(item, bulk)));
      };
      const large = send("large", 9000).catch(() => undefined);
      for (let atMs = 0; atMs < 20_000; atMs += 40)
        clock.at(atMs, () => void batcher({ tenant: "live" }).catch(() => undefined));
      const of = (tenant: Item["tenant"]): number => ran.filter((item) => item.tenant === tenant).length;
      let before = 0;
      let between = Infinity;
      clock.at(2000, () => {
        before = of("large");
        void send("small", 200).then(() => {
          between = of("large") - before;
          stop.abort();
        });
      });
      await clock.idle();
      await large;
      assert.equal(of("small"), 200);
      assert.ok(before > 0 && between <= 200 + 2 * 32, `${between} items of the other tenant before its last`);
    });
