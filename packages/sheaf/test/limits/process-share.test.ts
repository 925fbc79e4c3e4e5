import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenAIEmbeddings } from "../../dist/adapters/openai/index.js";
import { createBatcher, createRateLimit, type Batcher, type Clock } from "../../dist/index.js";
import type { RateDemand } from "../../dist/limits/fair-share.js";
import type { RateShares } from "../../dist/limits/process-share.js";
import { fakeEmbeddingsApi } from "../../../../test/fakes/limited-embeddings-api.mjs";
import { virtualClock } from "../../dist/testing/index.js";
import { at, busy, embeddingsOf } from "./rig.ts";

const numbers = { runs: 3000, weight: 300_000, perMs: 60_000 };

/** A store in memory; each process has its own view of it, which may be cut off. */
function store(clock: Clock) {
  const rows = new Map<string, { demand: RateDemand; endAtMs: number }>();
  let renewals = 0;
  const view = (state: { isAway?: boolean; isDead?: boolean; hangs?: number } = {}): RateShares => ({
    renew: async (member, demand, keepMs) => {
      if (state.isAway === true) throw new Error("the store is away");
      if (state.isDead === true || (state.hangs ?? 0) > 0) {
        state.hangs = 0;
        return new Promise(() => undefined);
      }
      renewals++;
      rows.set(member, { demand, endAtMs: clock.now() + keepMs });
      return [...rows].filter(([name, { endAtMs }]) => name !== member && endAtMs >= clock.now()).map(([, { demand: other }]) => other); // prettier-ignore
    },
    leave: async (member) => rows.delete(member),
  });
  return { view, rows, renewals: () => renewals };
}

function rig(given: typeof numbers | undefined = numbers) {
  const clock = virtualClock();
  const api = fakeEmbeddingsApi({ tokensPerMinute: 300_000, requestsPerMinute: 3000, shape: "10s", clock });
  const shared = store(clock);
  const make = (shares: RateShares): OpenAIEmbeddings =>
    embeddingsOf(api, { clock, rateLimit: createRateLimit({ limits: given, shares, clock }) });
  return { clock, api, shared, make };
}

const shareOf = (embed: OpenAIEmbeddings): number => embed.stats().rateLimit!.share;

for (const given of [numbers, undefined])
  test(`two busy processes have half each and use the limit up, with few refusals: ${given ? "with" : "without"} numbers`, async () => {
    const { clock, api, shared, make } = rig(given);
    const both = [make(shared.view()), make(shared.view())];
    const errors = both.map((embed) => busy(clock, [embed], 240_000));
    await at(clock, 60_000);
    const first = api.counts();
    assert.deepEqual(both.map(shareOf), [0.5, 0.5]);
    await at(clock, 240_000);
    const last = api.counts();
    const used = (last.tokens - first.tokens) / 900_000;
    assert.ok(used >= 0.95 && used <= 1.02, `used ${used}`);
    assert.ok(last.refused - first.refused <= 9, `${last.refused - first.refused} refusals in three minutes`);
    assert.deepEqual(errors.flat(), []);
    const [a, b] = both.map((embed) => embed.usage().totalTokens);
    assert.ok(Math.abs(a! / b! - 1) < 0.1, `${a} and ${b}`);
  });

test("a process whose callers have enough leaves the rest to the other one", async () => {
  const { clock, shared, make } = rig();
  const [light, heavy] = [make(shared.view()), make(shared.view())];
  busy(clock, [heavy!], 120_000);
  const trickle = async (): Promise<void> => {
    for (; clock.now() < 120_000; await clock.sleep(500)) await light!("word ".repeat(100));
  };
  const ended = trickle();
  await at(clock, 100_000);
  assert.ok(shareOf(light!) < 0.2 && shareOf(heavy!) > 0.8, `${shareOf(light!)} and ${shareOf(heavy!)}`);
  await ended;
});

for (const [everyMs, burst, p95Ms] of [
  [2000, 1, 20],
  [70, 1, 40],
  [10_000, 10, 40],
] as const)
  test(`bulk of one process leaves ${burst} live calls each ${everyMs} ms of another what they need, and has the rest`, async () => {
    const clock = virtualClock();
    const { view } = store(clock);
    const done = { live: 0, bulk: 0 };
    const process = (): Batcher<number, number> =>
      createBatcher(
        async (items: number[]) => {
          await clock.sleep(10);
          for (const item of items) done[item < 0 ? "live" : "bulk"]++;
          return items;
        },
        {
          maxBatchSize: 4,
          concurrency: 2,
          clock,
          rateLimit: createRateLimit({ limits: { items: 200, perMs: 10_000 }, shares: view(), clock }),
        },
      );
    const [users, nightly] = [process(), process()];
    const stop = new AbortController();
    const numbers = Array.from({ length: 8000 }, (_, i) => i);
    const backlog = nightly.many(numbers, { priority: "bulk", signal: stop.signal }).catch(() => undefined);
    const latencies: number[] = [];
    for (let atMs = 5000; atMs < 200_000; atMs += everyMs)
      for (let i = 0; i < burst; i++)
        clock.at(atMs, () => {
          const fromMs = clock.now();
          // A minute shows what they need.
          void users(-1).then(() => fromMs >= 65_000 && latencies.push(clock.now() - fromMs));
        });
    let left = 0;
    clock.at(200_000, () => {
      left = 4000 - done.live - done.bulk;
      stop.abort();
    });
    await clock.idle();
    await backlog;
    latencies.sort((a, b) => a - b);
    const p95 = latencies[Math.floor(0.95 * latencies.length)]!;
    assert.ok(p95 <= p95Ms, `p95 ${p95} ms`);
    assert.ok(left <= 0.2 * 4000, `${left} of 4000 items of the limit were not used`);
  });

test("the share of a process that dies silently goes to the other one after ten seconds", async () => {
  const { clock, shared, make } = rig();
  const state = { isDead: false };
  const [dying, other] = [make(shared.view(state)), make(shared.view())];
  busy(clock, [dying!], 60_000);
  busy(clock, [other!], 90_000);
  await at(clock, 60_000);
  assert.equal(shareOf(other!), 0.5);
  state.isDead = true;
  await at(clock, 68_000);
  assert.equal(shareOf(other!), 0.5);
  await at(clock, 72_000);
  assert.equal(shareOf(other!), 1);
});

test("a process whose last batcher closes gives its share back, and an idle one asks the store nothing", async () => {
  const { clock, shared, make } = rig();
  const [leaving, other] = [make(shared.view()), make(shared.view())];
  await Promise.all([leaving!("a"), other!("b")]);
  assert.equal(shared.rows.size, 2);
  await leaving!.close();
  assert.equal(shared.rows.size, 1);
  await clock.idle();
  const before = shared.renewals();
  clock.after(3_600_000, () => undefined);
  await clock.idle();
  assert.equal(shared.renewals(), before);
});

test("while the store is away each process keeps its share, and no call fails", async (t) => {
  const warned = t.mock.method(console, "warn", () => undefined);
  const { clock, shared, make } = rig();
  const states = [{ isAway: false }, { isAway: false }];
  const both = states.map((state) => make(shared.view(state)));
  const errors = both.map((embed) => busy(clock, [embed], 120_000));
  await at(clock, 30_000);
  for (const state of states) state.isAway = true;
  await at(clock, 90_000);
  assert.deepEqual(both.map(shareOf), [0.5, 0.5]);
  for (const state of states) state.isAway = false;
  await at(clock, 120_000);
  assert.deepEqual(errors.flat(), []);
  assert.equal(warned.mock.callCount(), 2, "once for each limit");
});

test("a renewal that never ends is given up and told, and the shares follow the demand again", async (t) => {
  const warned = t.mock.method(console, "warn", () => undefined);
  const { clock, shared, make } = rig();
  const state = { hangs: 0 };
  const [early, late] = [make(shared.view(state)), make(shared.view())];
  busy(clock, [early!], 60_000);
  await at(clock, 30_000);
  state.hangs = 1;
  busy(clock, [late!], 120_000);
  await at(clock, 50_000);
  assert.deepEqual(
    [early, late].map((embed) => shareOf(embed!)),
    [0.5, 0.5],
  );
  await at(clock, 120_000);
  assert.ok(shareOf(late!) > 0.9, `${shareOf(late!)}`);
  assert.match(String(warned.mock.calls[0]!.arguments[0]), /no answer within 5000 ms/);
});

test("a store that answers with nonsense changes nothing", async (t) => {
  t.mock.method(console, "warn", () => undefined);
  const { make } = rig();
  const embed = make({ renew: async () => [{ live: Number.NaN, bulk: 0 }], leave: async () => undefined });
  assert.equal((await embed("a")).length, 8);
  assert.equal(shareOf(embed), 1);
});

test("wrong options of shares are refused", () => {
  assert.throws(() => createRateLimit({ shares: {} as never }), /shares must be a store with renew\(\) and leave\(\), such as rateShares\(\), got/); // prettier-ignore
  assert.throws(() => createRateLimit({ clock: {} as never }), /clock must be a clock/);
});
