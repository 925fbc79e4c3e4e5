import assert from "node:assert/strict";
import { test } from "node:test";

// The page's own modules, as the browser loads them.
const page = new URL("../../src/dashboard/page/", import.meta.url);
const { History } = await import(`${page.href}history.js`);
const { verdictOf } = await import(`${page.href}verdict.js`);
const { duration, percent } = await import(`${page.href}format.js`);

const { gainOf } = await import(`${page.href}gain.js`);

const nothing = { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 };
const shown = { name: "m", maxBatchSize: 32, playground: { path: "infer/m" } };
const noRange = { speedup: null, low: null, high: null };
const start = { batchSize: 32, speedup: 2.1, low: 1.9, high: 2.3, runs: 40 };
const measuring = { verdict: { verdict: "measuring", batchSize: 16, runs: 7, ...noRange, cause: "few-runs", start: null }, costModel: null }; // prettier-ignore
const started = { ...measuring, verdict: { ...measuring.verdict, start } };
/** 58 items in one run take 27 ms; one by one 22 times as long. */
const gains = {
  verdict: { verdict: "gains", batchSize: 58, speedup: 22, low: 19.6, high: 25, runs: 340, cause: null, start: null },
  costModel: { fixedMs: 9.6, perItemMs: 0.3, fixedMsRange: [9.1, 10.1], perItemMsRange: [0.29, 0.31], basis: "runs" },
};
const gainsNothing = {
  verdict: {
    ...gains.verdict,
    verdict: "gains-nothing",
    batchSize: 16,
    speedup: 1.01,
    low: 0.98,
    high: 1.04,
    runs: 120,
  },
  costModel: { fixedMs: 0.01, perItemMs: 3, fixedMsRange: [0, 0.04], perItemMsRange: [2.9, 3.1], basis: "runs" },
};
const tick = (gain: object = measuring, state = "ready", reason?: string, queueWaitMs = 1) => ({
  state,
  reason,
  stats: { ...gain, queueWaitMs: { p50: queueWaitMs }, runMs: { p50: 10 } },
});

const empty = {
  items: nothing,
  batches: 0,
  batchedItems: 0,
  reasons: {},
  sizeReasons: {},
  failures: {},
  sizes: [],
  recent: [],
};

/** A history of one second in which this happened. */
function during(
  items: Partial<typeof nothing>,
  batches: number,
  batchedItems: number,
  reasons = {},
  failures = {},
  lanes?: object,
) {
  const history = new History();
  history.add(1000, { ...empty, items: { ...nothing, ...items }, lanes, batches, batchedItems, reasons, failures });
  return history;
}

test("the verdict is what an operator should know first", () => {
  const verdict = (...about: unknown[]): string => {
    const { mood, title } = verdictOf(shown, ...about);
    return `${mood}: ${title}`;
  };
  const busy = during({ ok: 320 }, 20, 320, { full: 12, idle: 8 });
  assert.equal(verdict(tick(gains), busy), "good: Batching gains 22× (20–25)");
  assert.equal(verdict(tick(started), busy), "calm: 16 items share a run", "no boast before callers' runs show it");
  assert.equal(verdict(tick(gainsNothing), busy), "warn: Batching gains almost nothing (0.98–1.04)");
  assert.match(verdict(tick(), during({ ok: 20 }, 20, 20)), /^calm: Items come one at a time/);
  assert.equal(verdict(tick(), during({ ok: 1 }, 1, 1)), "calm: One item arrived, and ran at once");
  assert.equal(verdict(tick(), during({}, 0, 0)), "calm: Ready, and nothing to do");
  const bulkRefused = { live: { dispatched: 60, rejected: 0 }, bulk: { dispatched: 0, rejected: 40 } };
  assert.doesNotMatch(verdict(tick(), during({ ok: 60, rejected: 40 }, 4, 60, {}, {}, bulkRefused)), /Overloaded/);
  assert.match(
    verdict(tick(), during({ ok: 60, rejected: 40 }, 4, 60)),
    /^bad: Overloaded: 40 % of items were refused/,
  );
  assert.match(verdict(tick(), during({ ok: 90, timeout: 10 }, 4, 90)), /^bad: 10 % of items failed/);
  assert.match(verdict(tick(), during({ ok: 999, error: 1 }, 4, 999)), /^warn: under 1 % of items failed/);
  assert.equal(verdict(tick(gains, "loading"), busy), "warn: m is loading");
  assert.equal(verdict(tick(gains, "failed", "no such file"), busy), "bad: m is not running");
});

test("until the gain of batches is measured, the page shows only what is missing", () => {
  const { title, why, method } = verdictOf(shown, tick(), during({ ok: 200 }, 7, 200, { full: 6 }));
  assert.equal(title, "28.6 items share a run");
  assert.match(why, /^The gain is being measured\. 200 items in 7 runs/);
  assert.match(method, /^No verdict on the callers' own runs yet: 7 runs of 30 count; /);
  assert.doesNotMatch(`${title} ${why} ${method}`, /×|instead|nothing/);
  const tied = verdictOf(shown, tick(), during({ ok: 200 }, 8, 200, { full: 4, "slot-free": 4 })).why;
  assert.match(tied, /4 of these runs started because/, "one half of them is not larger than the other");
  const warm = { ...measuring, costModel: { fixedMs: 1.6, perItemMs: 1.4, basis: "warm-up" } };
  assert.deepEqual(gainOf(warm), gainOf(measuring), "the warm-up's input is not the callers'");
});

test("an open verdict names the one cause that keeps it open, also beside the gain of the start", () => {
  const said = new Set();
  for (const [cause, words] of [
    ["few-runs", /7 runs of 30 count/],
    ["one-size", /the same number of items/],
    ["scatter", /run times of one size vary too much/],
    ["pace", /small runs were too rare, or ran at other times/],
    ["close", /too close to 1.1× to call/],
  ] as const) {
    const { kind, basis, figure } = gainOf({ ...started, verdict: { ...started.verdict, cause } });
    assert.equal(kind, "start");
    assert.equal(figure, "", "a model that nobody has called has no speed-up");
    assert.match(
      basis,
      /^Measured at the start with the sample, in 40 runs: 32 items one by one take 2\.1× as long .*1\.90× to 2\.3×\)/,
    );
    assert.match(basis, words);
    said.add(basis);
  }
  assert.equal(said.size, 5);
  const idle = verdictOf(shown, tick(started), during({}, 0, 0));
  assert.match(idle.why, /The gain is being measured; at the start, runs of 32 gained 2\.1×\.$/);
});

test("a verdict shows its range and how many runs it rests on", () => {
  const { basis, range, headline } = gainOf(gains);
  assert.equal(range, "20× to 25×, 340 runs");
  assert.match(
    basis,
    /^Measured over the last 340 runs, of 58 items on average: .* 22× as long \(95 % range 20× to 25×\)\./,
  );
  assert.match(basis, /A run takes 9\.1 ms to 10\.1 ms, and 0\.29 ms to 0\.31 ms more for each item\.$/);
  const weighed = (weights: object): string =>
    gainOf({ ...gains, costModel: { ...gains.costModel, ...weights } }).basis;
  const learned = { perWeightMs: 0.02, perWeightMsRange: [0.019, 0.021], batchWeight: "sum" };
  assert.match(
    weighed(learned),
    / more for each item and 19\.0 ms to 21\.0 ms for each 1,000 of the items' weights together\.$/,
  );
  assert.match(weighed({ ...learned, batchWeight: "padded" }), /1,000 of the heaviest item's weight, for each item\.$/);
  assert.match(weighed({ perWeightMs: null }), / more for each item\. The items' weights do not explain run times\.$/);
  assert.equal(headline, "Batching gains 22× (20–25)");
  assert.match(gainOf(gainsNothing).basis, /95 % range 0\.98× to 1\.04×/);
});

test("items that wait while runs are small are not called few", () => {
  const { mood, title, why } = verdictOf(shown, tick(measuring, "ready", undefined, 120), during({ ok: 30 }, 20, 30));
  assert.equal(mood, "warn");
  assert.match(`${title} ${why}`, /^Items wait, but only 1\.5 share a run .*120 ms or more for runs of 10\.0 ms/);
  const alone = verdictOf({ ...shown, maxBatchSize: 1 }, tick(), during({ ok: 20 }, 20, 20));
  assert.equal(alone.title, "Each item runs alone");
});

test("the verdict's second sentence says why: the commonest reason, or what failed", () => {
  const why = (...about: unknown[]): string => verdictOf(shown, ...about).why;
  assert.match(
    why(tick(gains), during({ ok: 320 }, 20, 320, { full: 12, idle: 8 })),
    /Most runs started because as many items/,
  );
  assert.match(
    why(tick(gains), during({ ok: 320 }, 20, 320, { idle: 20 })),
    /Every run started because a slot was free/,
  );
  const failures = { WORKER_CRASHED: 1, MODEL: 1 };
  assert.match(why(tick(), during({ ok: 9, error: 2 }, 3, 11, {}, failures)), /2 items failed \(WORKER_CRASHED\)/);
  assert.equal(why(tick(gains, "failed", "no such file"), during({}, 0, 0)), "no such file");
});

test("a history keeps two minutes, and leaves a hole where seconds are missing", () => {
  const history = new History();
  const second = (ok: number): object => ({ ...empty, items: { ...nothing, ok } });
  for (let s = 0; s < 300; s++) history.add(s * 1000, second(s));
  assert.ok(history.points.length <= 123);
  history.add(310_000, second(310));
  const [seconds, values] = history.columns([({ items }: any) => items.ok]);
  assert.equal(seconds.at(-1), 0);
  assert.deepEqual(values.slice(-3), [299, null, 310]);
  assert.equal(history.over(60).seconds, 50);
});

test("figures are written in the unit that reads best", () => {
  const durations = [0.123, 1.26, 123.4, 999.9, 1234, 12_345].map(duration);
  assert.equal(durations.join(", "), "0.12 ms, 1.3 ms, 123 ms, 1.00 s, 1.23 s, 12.3 s");
  assert.deepEqual([0, 0.004, 0.126].map(percent), ["0 %", "under 1 %", "13 %"]);
});

test("the slots that the load takes stand in a sentence, and nothing while they are not known", async () => {
  const { slotsOf } = await import(`${page.href}panels.js`);
  assert.equal(slotsOf({ slotsNeeded: null }), "");
  const slotsNeeded = { slots: 3, low: 2, high: 5, arrivedPerS: 400, withinMs: 500 };
  const start = "To answer 99 % of the items within 500 ms, the last minute takes";
  assert.equal(slotsOf({ slotsNeeded }), `${start} 3 slots (2 on average, 5 in the busiest second).`);
  assert.equal(slotsOf({ slotsNeeded: { ...slotsNeeded, slots: 1, low: 1, high: 1 } }), `${start} 1 slot.`);
});
