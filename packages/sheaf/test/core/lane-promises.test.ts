// Sentences of the documents about lanes, each against traffic that tries to break it.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  adaptive,
  auto,
  createBatcher,
  fixedWindow,
  greedy,
  type BatcherOptions,
  type Executor,
  type Policy,
} from "../../dist/index.js";
import { virtualClock, type VirtualClock } from "../../dist/testing/index.js";

const bulk = { priority: "bulk" } as const;
const runMs = (items: number): number => 10 + 2 * items;

/** Live items are negative. */
function rig(options: BatcherOptions<number, number>, clock = virtualClock()) {
  const runs: number[][] = [];
  const batcher = createBatcher(
    async (items: number[]) => {
      runs.push(items);
      await clock.sleep(runMs(items.length));
      return items;
    },
    { concurrency: 1, maxBatchSize: 32, maxQueueSize: 100_000, clock, ...options },
  );
  const stop = new AbortController();
  const flood = { ...bulk, signal: stop.signal };
  const backlog = (items: number): void => void batcher.many(Array.from({ length: items }, (_, i) => i + 1), flood).catch(() => undefined); // prettier-ignore
  return { batcher, clock, runs, stop, backlog };
}

const quantile = (latencies: readonly number[], share: number): number =>
  latencies.toSorted((a, b) => a - b)[Math.floor(share * latencies.length)]!;

const policies: Readonly<Record<string, () => Policy>> = { auto, greedy, adaptive, fixedWindow };

for (const [name, policy] of Object.entries(policies))
  test(`bulk goes after live calls, however long it has waited, with every policy: ${name}`, async () => {
    const play = async (items: number): Promise<number> => {
      const { batcher, clock, backlog, stop } = rig({ policy: policy(), maxWaitMs: 10 });
      backlog(items);
      const latencies: number[] = [];
      for (let atMs = 1000; atMs < 130_000; atMs += 130)
        clock.at(atMs, () => void batcher(-1).then(() => latencies.push(clock.now() - atMs)));
      clock.at(130_000, () => stop.abort());
      await clock.idle();
      return quantile(latencies, 0.99);
    };
    const [alone, beside] = [await play(0), await play(35_000)];
    // Runs of 8 give 0.7 of the full rate.
    assert.ok(beside <= 1.5 * alone + runMs(8), `p99 ${beside} ms, alone ${alone} ms`);
  });

test("bulk makes a run that holds live calls at most 1.4 times as long", async () => {
  const { batcher, clock, runs, backlog, stop } = rig({});
  backlog(30_000);
  for (let atMs = 5000; atMs < 60_000; atMs += 100)
    for (let i = 0; i < 1 + (atMs / 100) % 7; i++) clock.at(atMs, () => void batcher(-1)); // prettier-ignore
  clock.at(10_000, () => runs.splice(0));
  clock.at(60_000, () => stop.abort());
  await clock.idle();
  const mixed = runs.filter((items) => items.some((item) => item < 0) && items.some((item) => item > 0));
  assert.ok(mixed.length > 100, `${mixed.length} runs hold both`);
  for (const items of mixed) {
    const live = items.filter((item) => item < 0).length;
    assert.ok(runMs(items.length) <= 1.4 * runMs(live) + 1e-6, `${items.length} items, ${live} of them live`);
  }
});

test("bulk goes before immediate calls only once they alone have kept it waiting for 20 full runs", async () => {
  // What interactive calls owe it before counts too, up to a full run.
  const { batcher, clock, runs, stop } = rig({ policy: greedy() });
  for (let atMs = 0; atMs < 30_000; atMs += 50)
    for (let i = 0; i < 32; i++)
      clock.at(atMs, () => void batcher(-1, { priority: "immediate", signal: stop.signal }).catch(() => undefined));
  clock.at(10_000, () => {
    runs.splice(0);
    void batcher.many(Array.from({ length: 5000 }, (_, i) => i + 1), { ...bulk, signal: stop.signal }).catch(() => undefined); // prettier-ignore
  });
  clock.at(30_000, () => stop.abort());
  await clock.idle();
  const before = runs.findIndex((items) => items.some((item) => item > 0));
  assert.ok(before >= 19 && before <= 22, `${before} runs before the first that holds bulk`);
  const all = runs.slice(0, 200).flat();
  const share = all.filter((item) => item > 0).length / all.length;
  assert.ok(share > 0.03 && share < 0.07, `bulk has ${share}`);
});

test("a storm of bulk calls alone is no standing overload: bulk keeps its order", async () => {
  const clock = virtualClock();
  const { batcher, runs } = rig({ timeoutMs: 2000 }, clock);
  let item = 0;
  let overloads = 0;
  for (let atMs = 0; atMs < 25_000; atMs += 10)
    clock.at(atMs, () => {
      for (let i = 0; i < 12; i++) void batcher(++item, bulk).catch(() => undefined);
      if (batcher.stats().overload !== null) overloads++;
    });
  await clock.idle();
  const ran = runs.flat();
  assert.ok(batcher.stats().items.timeout > 3000);
  assert.equal(overloads, 0);
  assert.deepEqual(ran, ran.toSorted((a, b) => a - b)); // prettier-ignore
});

for (const lastLiveAtMs of [undefined, 0, 100_000])
  test(`a batch of bulk goes ahead to a busy worker only if no live call has come for a minute: the last at ${lastLiveAtMs}`, async () => {
    const clock = virtualClock();
    const aheadAtMs: number[] = [];
    const batcher = createBatcher(oneByOne(clock, aheadAtMs), { clock, maxBatchSize: 8, maxQueueSize: 100_000 });
    await batcher.ready();
    const stop = new AbortController();
    void batcher.many(Array.from({ length: 40_000 }, (_, i) => i), { ...bulk, signal: stop.signal }).catch(() => undefined); // prettier-ignore
    for (let atMs = 0; lastLiveAtMs !== undefined && atMs <= lastLiveAtMs; atMs += 20_000)
      clock.at(atMs, () => void batcher(-1));
    clock.at(200_000, () => stop.abort());
    await clock.idle();
    const fromMs = lastLiveAtMs === undefined ? 0 : lastLiveAtMs + 60_000;
    assert.deepEqual(aheadAtMs.filter((atMs) => atMs < fromMs), []); // prettier-ignore
    assert.ok(aheadAtMs.some((atMs) => atMs < fromMs + 1000), "then it goes ahead"); // prettier-ignore
  });

/** An executor of one slot that takes a batch ahead, and says when it did. */
function oneByOne(clock: VirtualClock, aheadAtMs: number[]): Executor<number, number> {
  let holding = 0;
  let freeAtMs = 0;
  return {
    slots: 1,
    prefetch: 1,
    ready: () => Promise.resolve(),
    run: async (items, context) => {
      if (++holding > 1 && items.every((item) => item >= 0)) aheadAtMs.push(clock.now());
      freeAtMs = Math.max(clock.now(), freeAtMs) + 50;
      context.measured(50);
      await new Promise<void>((resolve) => void clock.at(freeAtMs, resolve));
      holding--;
      return items;
    },
    close: () => Promise.resolve(),
  };
}

for (const way of ["many", "map", "calls"] as const)
  for (const [everyMs, burst] of [
    [200, 1],
    [5000, 25],
  ] as const)
    test(`one-time codes go first, and a campaign by ${way} leaves the part of the rate limit that they need: ${burst} each ${everyMs} ms`, async () => {
      const play = async (size: number) => {
        const clock = virtualClock();
        const send = createBatcher(
          async ([push]: string[]) => {
            await clock.sleep(80);
            return [push!];
          },
          { maxBatchSize: 1, concurrency: 50, policy: greedy(), rateLimit: { runs: 300, perMs: 1000 }, clock },
        );
        const stop = new AbortController();
        const options = { ...bulk, signal: stop.signal };
        const list = Array.from({ length: size }, (_, i) => `campaign ${i}`);
        const campaign = async (): Promise<void> => {
          if (way === "many") await send.many(list, options);
          else if (way === "map") for await (const _ of send.map(list, options));
          else await Promise.allSettled(list.map((push) => send(push, options)));
        };
        const ended = campaign().catch(() => undefined);
        const latencies: number[] = [];
        const failed: unknown[] = [];
        for (let atMs = 1000; atMs < 40_000; atMs += everyMs)
          for (let i = 0; i < burst; i++)
            clock.at(atMs, () => {
              const fromMs = clock.now();
              send("code", { priority: "immediate" }).then(
                () => latencies.push(clock.now() - fromMs),
                (error: unknown) => failed.push(error),
              );
            });
        clock.at(40_000, () => stop.abort());
        await clock.idle();
        await ended;
        assert.deepEqual(failed, []);
        return quantile(latencies, 0.99);
      };
      const [alone, beside] = [await play(0), await play(15_000)];
      assert.ok(beside <= 1.5 * alone + 80, `p99 ${beside} ms, alone ${alone} ms`);
    });
