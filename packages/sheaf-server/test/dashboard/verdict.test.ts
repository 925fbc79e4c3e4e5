import assert from "node:assert/strict";
import { test } from "node:test";

// The page's own modules, as the browser loads them.
const page = new URL("../../src/dashboard/page/", import.meta.url);
const { History } = await import(`${page.href}history.js`);
const { verdictOf } = await import(`${page.href}verdict.js`);
const { duration, percent } = await import(`${page.href}format.js`);

const nothing = { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 };
const tick = (speedup: number | null, state = "ready", reason?: string) => ({
  state,
  reason,
  stats: { speedup, expectedSpeedup: null },
});

/** A history of one second in which this happened. */
function during(items: Partial<typeof nothing>, batches: number, batchedItems: number, reasons = {}, failures = {}) {
  const history = new History();
  const second = { items: { ...nothing, ...items }, batches, batchedItems, reasons, failures, sizes: [], recent: [] };
  history.add(1000, second);
  return history;
}

test("the verdict is what an operator should know first", () => {
  const verdict = (...about: unknown[]): string => {
    const { mood, title } = verdictOf("m", ...about);
    return `${mood}: ${title}`;
  };
  const busy = during({ ok: 320 }, 20, 320, { full: 12, idle: 8 });
  assert.equal(verdict(tick(8.5), busy), "good: Batching works: 16 items share a run, 8.5× the work per run");
  assert.equal(verdict(tick(null), busy), "good: Batching works: 16 items share a run");
  assert.equal(verdict(tick(1), busy), "warn: Batching happens: 16 items share a run, which gains nothing here");
  assert.equal(verdict(tick(1), during({ ok: 30 }, 20, 30)), "calm: Few items come together: 1.5 share a run");
  assert.match(verdict(tick(1), during({ ok: 20 }, 20, 20)), /^calm: Items come one at a time/);
  assert.equal(verdict(tick(1), during({}, 0, 0)), "calm: Ready, and nothing to do");
  assert.match(
    verdict(tick(4), during({ ok: 60, rejected: 40 }, 4, 60)),
    /^bad: Overloaded: 40 % of items were refused/,
  );
  assert.match(verdict(tick(4), during({ ok: 90, timeout: 10 }, 4, 90)), /^bad: 10 % of items failed/);
  assert.match(verdict(tick(4), during({ ok: 999, error: 1 }, 4, 999)), /^warn: under 1 % of items failed/);
  assert.equal(verdict(tick(4, "loading"), busy), "warn: m is loading");
  assert.equal(verdict(tick(4, "failed", "no such file"), busy), "bad: m is not running");
});

test("the verdict's second sentence says why: the commonest reason, or what failed", () => {
  const why = (...about: unknown[]): string => verdictOf("m", ...about).why;
  assert.match(
    why(tick(8), during({ ok: 320 }, 20, 320, { full: 12, idle: 8 })),
    /Most batches left because as many items/,
  );
  assert.match(why(tick(8), during({ ok: 320 }, 20, 320, { idle: 20 })), /Every batch left because a slot was free/);
  const failures = { WORKER_CRASHED: 1, MODEL: 1 };
  assert.match(why(tick(8), during({ ok: 9, error: 2 }, 3, 11, {}, failures)), /2 items failed \(WORKER_CRASHED\)/);
  assert.equal(why(tick(8, "failed", "no such file"), during({}, 0, 0)), "no such file");
});

test("a history keeps two minutes, and leaves a hole where seconds are missing", () => {
  const history = new History();
  const second = (ok: number) => ({
    items: { ...nothing, ok },
    batches: 0,
    batchedItems: 0,
    reasons: {},
    failures: {},
    sizes: [],
    recent: [],
  });
  for (let s = 0; s < 300; s++) history.add(s * 1000, second(s));
  assert.ok(history.points.length <= 123);
  history.add(310_000, second(310));
  const [seconds, values] = history.columns([({ items }: any) => items.ok]);
  assert.equal(seconds.at(-1), 0);
  assert.deepEqual(values.slice(-3), [299, null, 310]);
  assert.equal(history.over(60).seconds, 50);
});

test("figures are written in the unit that reads best", () => {
  assert.deepEqual([0.123, 1.26, 123.4, 1234, 12_345].map(duration), [
    "0.12 ms",
    "1.3 ms",
    "123 ms",
    "1.23 s",
    "12.3 s",
  ]);
  assert.deepEqual([0, 0.004, 0.126].map(percent), ["0 %", "under 1 %", "13 %"]);
});
