import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { defaultSettings, type ModelDefinition } from "../../dist/index.js";
import { ModelCache } from "../../dist/cache/model-cache.js";
import { ResultCache } from "../../dist/cache/result-cache.js";
import { ServedModel } from "../../dist/server/models/served-model.js";

/** What happens next: a request of some items, a reload, time, or a run that goes on. */
const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant("ask" as const), items: fc.array(fc.nat(8), { minLength: 1, maxLength: 4 }), gone: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("run" as const), fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reload" as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 80 }) }) },
); // prettier-ignore

const ttlMs = 100;

interface Batch {
  readonly items: readonly string[];
  readonly version: number;
  settle(fails: boolean): void;
}

test("under evictions, reloads, failures and callers who leave, each gets the result of its item, of its version, and not too old", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      const clock = { nowMs: 1, now: () => clock.nowMs };
      // Room for about four of the nine results.
      const store = new ResultCache({ maxBytes: 2600, clock });
      const running: Batch[] = [];
      const open = (version: number): ServedModel => {
        const run = (items: readonly string[]): Promise<unknown> =>
          new Promise((resolve, reject) => {
            const answer = (): unknown => items.map((item) => ({ item, version, ranAtMs: clock.nowMs }));
            const settle = (fails: boolean): void => (fails ? reject(new Error("the run failed")) : resolve(answer()));
            running.push({ items, version, settle });
          });
        const definition = { name: "m", input: { kind: "text" }, output: { kind: "json" }, run };
        const settings = { ...defaultSettings, maxWaitMs: 0, maxBatchSize: 3 };
        return new ServedModel(definition as unknown as ModelDefinition, settings, {
          cache: new ModelCache(store, { ttlMs }),
        });
      };
      let version = 1;
      let model = open(version);
      const all = [model];
      const asked: Promise<void>[] = [];
      const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
      const ask = async (items: readonly string[], gone: boolean): Promise<void> => {
        const askedOf = version;
        const askedAtMs = clock.nowMs;
        const controller = new AbortController();
        const outcomes = model.inferAll(items, { signal: controller.signal });
        if (gone) controller.abort(new Error("gone"));
        for (const [i, outcome] of (await outcomes).entries()) {
          if (outcome.status === "rejected") {
            assert.match(String(outcome.reason), /the run failed|gone/);
            continue;
          }
          const { item, version: ranOn, ranAtMs } = outcome.value.value as any;
          assert.equal(item, items[i]);
          assert.equal(ranOn, askedOf);
          assert.ok(askedAtMs - ranAtMs <= ttlMs, `asked at ${askedAtMs}, ran at ${ranAtMs}`);
        }
      };
      for (const one of steps) {
        if (one.kind === "ask")
          asked.push(ask(one.items.map((item) => `text ${item}`), one.gone)); // prettier-ignore
        else if (one.kind === "run") running.shift()?.settle(one.fails);
        else if (one.kind === "wait") clock.nowMs += one.ms;
        else {
          void model.close(1e9);
          all.push((model = open(++version)));
        }
        await turn();
        const { bytes } = all.map(({ cache }) => cache!.counts).reduce((sum, { bytes }) => ({ bytes: sum.bytes + bytes }), { bytes: 0 }); // prettier-ignore
        assert.ok(bytes <= store.maxBytes);
      }
      const ends = Promise.all([...asked, ...all.map((one) => one.close(1e9))]);
      let isOver = false;
      ends.then(() => (isOver = true)).catch(() => (isOver = true));
      while (!isOver) {
        for (const batch of running.splice(0)) batch.settle(false);
        await turn();
      }
      await ends;
      for (const { cache } of all) assert.deepEqual([cache!.counts.items, cache!.counts.bytes], [0, 0]);
    }),
    { seed: 20_261_126, numRuns: 150 },
  );
});
