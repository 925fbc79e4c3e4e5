import assert from "node:assert/strict";
import { test } from "node:test";
import { backOffMs } from "../../../dist/adapters/api-client/back-off.js";
import { OutagePause } from "../../../dist/adapters/api-client/outage-pause.js";
import { withRetries } from "../../../dist/adapters/api-client/retries.js";
import { RetryBudget } from "../../../dist/adapters/api-client/retry-budget.js";
import { createBatcher, greedy } from "../../../dist/index.js";
import { manualClock } from "../../../dist/testing/index.js";
import { numbers, watch } from "../../support/rig.ts";

const status = (code: number, more: object = {}): Error =>
  Object.assign(new Error(`${code}`), { status: code, ...more });

/** A batcher of single items over a service that answers as `respond` says, by the number of the request. */
function rig(respond: (request: number) => unknown, options: { budget?: number; after?: "refused" | "failed" } = {}) {
  const { budget, after = "failed" } = options;
  const clock = manualClock();
  const sentAtMs: number[] = [];
  const service = async (items: number[]): Promise<number[]> => {
    sentAtMs.push(clock.now());
    const error = respond(sentAtMs.length);
    await new Promise<void>((resolve) => clock.after(10, resolve));
    if (error instanceof Error) throw error;
    return items;
  };
  const run = withRetries<number, number>(service, { maxRetries: 2, after, budget, clock, random: () => 0 });
  const call = createBatcher<number, number>(run, { clock, policy: greedy(), maxBatchSize: 1, concurrency: 4 });
  return { clock, call, sentAtMs };
}

test("a budget has 10 retries at first, then one for each five successes, and never more than 100", () => {
  const budget = new RetryBudget();
  const spent = (): number => {
    let count = 0;
    while (budget.spend()) count++;
    return count;
  };
  const succeed = (count: number): void => numbers(count).forEach(() => budget.succeeded());
  assert.equal(spent(), 10);
  succeed(4);
  assert.equal(spent(), 0);
  succeed(1);
  assert.equal(spent(), 1);
  succeed(10_000);
  assert.equal(spent(), 100);
});

for (const share of [0.05, 0.1, 0.2, 0.3, 0.5, 1])
  test(`a budget of ${share}: retries are that share of successes and the first 10, whatever the order`, () => {
    const budget = new RetryBudget(share);
    let retries = 0;
    for (let i = 0; i < 10_000; i++) {
      budget.succeeded();
      // In waves, so that nothing is lost to the bound on savings.
      if (i % 10 === 9) while (budget.spend()) retries++;
    }
    assert.ok(Math.abs(retries - (10 + share * 10_000)) <= 1, `${retries}`);
  });

test("a service that fails every request gets 10 retries in all, however many batches there are", async () => {
  const { clock, call, sentAtMs } = rig(() => status(500));
  const calls = numbers(200).map((n) => watch(call(n)));
  await clock.advanceAsync(3_600_000);
  assert.ok(calls.every(({ reason }) => (reason as { status?: number }).status === 500));
  assert.equal(sentAtMs.length, 210);
});

test("where everything fails nothing is sent for half a second, then a second, then up to eight", async () => {
  const { clock, call, sentAtMs } = rig(() => status(500), { after: "refused" });
  numbers(60).forEach((n) => watch(call(n)));
  await clock.advanceAsync(120_000);
  // In a round each of the four slots sends one request, of 10 ms.
  const rounds = [...new Set(sentAtMs)];
  const gaps = rounds.slice(1).map((atMs, i) => Math.round(atMs - rounds[i]!));
  assert.deepEqual(gaps.slice(0, 7), [10, 510, 1010, 2010, 4010, 8010, 8010]);
  assert.equal(sentAtMs.length, 60);
});

test("after a pause the first success ends it: waiting items go without another one", async () => {
  const { clock, call, sentAtMs } = rig((request) => (request <= 8 ? status(503) : undefined), { after: "refused" });
  const calls = numbers(50).map((n) => watch(call(n)));
  await clock.advanceAsync(500);
  assert.equal(sentAtMs.length, 8);
  await clock.advanceAsync(200);
  assert.equal(calls.filter(({ value }) => value !== undefined).length, 42);
});

test("a request that was sent before the pause makes it no longer", () => {
  const pause = new OutagePause(() => 0);
  for (let i = 0; i < 4; i++) assert.equal(pause.failed(0, 10), undefined);
  assert.equal(pause.failed(0, 10), 500);
  for (let i = 0; i < 20; i++) assert.equal(pause.failed(5, 20), undefined);
  assert.equal(pause.failed(510, 520), 1000);
  pause.answered();
  for (let i = 0; i < 4; i++) assert.equal(pause.failed(1600, 1610), undefined);
  assert.equal(pause.failed(1600, 1610), 500);
});

test("refused inputs, keys and routes are answers: they pause nothing", async () => {
  for (const code of [400, 401, 404, 422]) {
    const { clock, call, sentAtMs } = rig(() => status(code));
    numbers(50).forEach((n) => watch(call(n)));
    await clock.advanceAsync(130);
    assert.equal(sentAtMs.length, 50, `${code}`);
  }
});

test("429 while other batches get through costs no budget: 40 batches are answered through more refusals than that", async () => {
  const { clock, call, sentAtMs } = rig(
    (request) => ((request * 7919) % 101 < 34 ? undefined : status(429, { retryAfterMs: 20 })),
    { after: "refused" },
  );
  const calls = numbers(40).map((n) => watch(call(n)));
  await clock.advanceAsync(60_000);
  assert.equal(calls.filter(({ value }) => value === undefined).length, 0);
  assert.ok(sentAtMs.length > 80, `${sentAtMs.length}`);
});

test("a client that repeats refused batches repeats no failed one, and the other way round", async () => {
  for (const [after, code, expected] of [
    ["refused", 429, 3],
    ["refused", 500, 1],
    ["refused", 503, 1],
    ["failed", 500, 3],
    ["failed", 429, 1],
  ] as const) {
    const { clock, call, sentAtMs } = rig(() => status(code), { after });
    watch(call(1));
    await clock.advanceAsync(60_000);
    assert.equal(sentAtMs.length, expected, `${after} ${code}`);
  }
});

test("a wait that the service names is kept as it is; others are spread, so that clients do not come back together", async () => {
  assert.deepEqual([1, 2, 3, 9].map((failures) => backOffMs(failures, 0)), [500, 1000, 2000, 8000]); // prettier-ignore
  assert.equal(backOffMs(1, 1), 375);
  const { clock, call, sentAtMs } = rig((request) => (request === 1 ? status(503, { retryAfterMs: 700 }) : undefined));
  const first = watch(call(1));
  await clock.advanceAsync(709);
  assert.equal(sentAtMs.length, 1);
  await clock.advanceAsync(11);
  assert.equal(first.value, 1);
});
