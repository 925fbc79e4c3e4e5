import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, type Batcher, type BatcherOptions, type BatchRecord } from "../../dist/index.js";
import { LearnedConcurrency } from "../../dist/core/dispatch/learned-concurrency.js";
import { virtualClock, type VirtualClock } from "../../dist/testing/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";

/** A service that works on `places` runs side by side; more than that share the places equally. A run of n takes 10 + n ms alone. */
class Service {
  places: number;
  most = 0;
  readonly #clock: VirtualClock;
  #runs: { leftMs: number; resolve: () => void }[] = [];
  #atMs = 0;
  #cancel: () => void = () => undefined;

  constructor(clock: VirtualClock, places: number) {
    this.#clock = clock;
    this.places = places;
  }

  run(size: number): Promise<void> {
    return new Promise((resolve) => {
      this.#advance();
      this.#runs.push({ leftMs: 10 + size, resolve });
      this.most = Math.max(this.most, this.#runs.length);
      this.#arm();
    });
  }

  #advance(): void {
    const nowMs = this.#clock.now();
    const rate = Math.min(1, this.places / this.#runs.length);
    for (const run of this.#runs) run.leftMs -= rate * (nowMs - this.#atMs);
    this.#atMs = nowMs;
  }

  #arm(): void {
    this.#cancel();
    if (this.#runs.length === 0) return;
    const leastMs = Math.min(...this.#runs.map(({ leftMs }) => leftMs));
    this.#cancel = this.#clock.after(leastMs / Math.min(1, this.places / this.#runs.length), () => {
      this.#advance();
      const ended = this.#runs.filter(({ leftMs }) => leftMs < 1e-6);
      this.#runs = this.#runs.filter(({ leftMs }) => leftMs >= 1e-6);
      for (const { resolve } of ended) resolve();
      this.#arm();
    });
  }
}

interface Trial {
  readonly places: number;
  /** Calls a second. */
  readonly perS: number;
  readonly forMs?: number;
  readonly options?: BatcherOptions<number, number>;
  readonly during?: (batcher: Batcher<number, number>, service: Service, clock: VirtualClock) => void;
}

/** Poisson calls before such a service, in batches of at most 10. Gives the batcher at the end of the calls, and the most in flight. */
async function callFor({ places, perS, forMs = 5000, options = {}, during }: Trial) {
  const clock = virtualClock();
  const service = new Service(clock, places);
  const run = async (items: number[]): Promise<number[]> => {
    await service.run(items.length);
    return items;
  };
  const batcher = createBatcher<number, number>(run, { clock, maxBatchSize: 10, ...options });
  const random = seededRandom(11);
  const next = (atMs: number): void => {
    if (atMs > forMs) return;
    clock.at(atMs, () => {
      void batcher(1).catch(() => undefined);
      next(atMs - (1000 * Math.log(1 - random())) / perS);
    });
  };
  next(0);
  during?.(batcher, service, clock);
  const numbers: (number | undefined)[] = [];
  for (let atMs = 100; atMs <= forMs; atMs += 100) clock.at(atMs, () => numbers.push(batcher.stats().concurrency?.now));
  await clock.idle();
  return { batcher, service, numbers: numbers as number[] };
}

test("before a service that does one run at a time the number falls to 1", async () => {
  const { batcher, numbers } = await callFor({ places: 1, perS: 300 });
  assert.ok(
    numbers.slice(10).every((number) => number <= 2),
    `${numbers}`,
  );
  assert.equal(numbers.filter((number) => number === 1).length > 30, true, `${numbers}`);
  assert.equal(batcher.stats().concurrency?.cause, "queue");
});

test("before a service of many places the number rises until full batches no longer wait, and no call is lost", async () => {
  // Four at once serve 2,000 a second.
  const { batcher, numbers } = await callFor({ places: 40, perS: 8000, forMs: 2000 });
  assert.ok(numbers.at(-1)! >= 16, `${numbers}`);
  assert.ok(
    numbers.every((number) => number <= 80),
    `${numbers}`,
  );
  assert.equal(batcher.stats().items.rejected, 0);
  assert.ok(batcher.stats().queueWaitMs.p50 < 30, JSON.stringify(batcher.stats().queueWaitMs));
});

test("without a full batch that waits the number does not rise, however good the runs", async () => {
  const { service, numbers } = await callFor({ places: 40, perS: 800, options: { maxBatchSize: 100 } });
  assert.ok(
    numbers.every((number) => number <= 4),
    `${numbers}`,
  );
  assert.ok(service.most <= 4);
});

test("a number that is given stays as it is, and so do an executor's slots", async () => {
  const { batcher, service } = await callFor({ places: 40, perS: 8000, forMs: 500, options: { concurrency: 8 } });
  assert.equal(service.most, 8);
  assert.deepEqual(batcher.stats().concurrency, { now: 8, cause: "option" });
  assert.equal(batcher.capacity.concurrency, 8);
  const done = async (): Promise<void> => undefined;
  const ofSlots = createBatcher({ slots: 3, ready: done, run: async (items: number[]) => items, close: done });
  assert.deepEqual(ofSlots.stats().concurrency, { now: 3, cause: "slots" });
});

test("a learned number starts at 4 and is bound by 256", () => {
  const batcher = createBatcher(async (items: number[]) => items);
  assert.deepEqual(batcher.stats().concurrency, { now: 4, cause: "start" });
  assert.equal(batcher.capacity.concurrency, 256);
});

test("a service that loses half of its places, or gains as many, is followed", async () => {
  const places = (count: number) => (_: unknown, service: Service, clock: VirtualClock) =>
    clock.at(3000, () => (service.places = count));
  const lost = await callFor({ places: 4, perS: 1500, forMs: 6000, during: places(2) });
  assert.ok(
    lost.numbers.slice(20, 30).every((number) => number >= 3 && number <= 6),
    `${lost.numbers}`,
  );
  assert.ok(
    lost.numbers.slice(-10).every((number) => number <= 3),
    `${lost.numbers}`,
  );
  const gained = await callFor({ places: 4, perS: 3500, forMs: 6000, during: places(8) });
  assert.ok(
    gained.numbers.slice(-10).some((number) => number >= 7),
    `${gained.numbers}`,
  );
});

const record = (part: Partial<BatchRecord>): BatchRecord => ({
  batchId: 1,
  reason: "full",
  size: 10,
  weight: 10,
  group: undefined,
  startedAtMs: 0,
  queueWaitMs: { mean: 0, max: 0 },
  runMs: 20,
  tookMs: 20,
  outcome: "ok",
  failedItems: 0,
  extraRuns: 0,
  attempt: 1,
  ...part,
});

/** Runs one after the other, with every slot taken, a full batch waiting, and no run longer than the others. */
function press(learned: LearnedConcurrency, runs: number, startAtMs: number): number {
  let atMs = startAtMs;
  for (let run = 0; run < runs; run++) {
    learned.ended(record({ startedAtMs: atMs, inFlight: learned.limit }), atMs + 20, true, true);
    atMs += 20;
  }
  return atMs;
}

test("a run that fails halves the number, down to what it began with, and for a minute none is tried", () => {
  const learned = new LearnedConcurrency();
  const atMs = press(learned, 8, 0);
  assert.equal(learned.limit, 8, "after eight good runs");
  const laterMs = press(learned, 60, atMs);
  const before = learned.limit;
  assert.ok(before >= 32, `${before}`);
  learned.ended(record({ startedAtMs: laterMs, outcome: "error" }), laterMs + 20, true, true);
  assert.equal(learned.limit, before / 2);
  assert.equal(learned.cause, "failure");
  // Those that failed with it began under the old number.
  learned.ended(record({ startedAtMs: laterMs, outcome: "error" }), laterMs + 21, true, true);
  assert.equal(learned.limit, before / 2);
  const quietMs = press(learned, 2000, laterMs + 30);
  assert.equal(learned.limit, before / 2, "no probing for a minute");
  press(learned, 2000, quietMs + 30_000);
  assert.ok(learned.limit > before / 2, `${learned.limit}`);
  for (let failed = 0; failed < 20; failed++)
    learned.ended(record({ startedAtMs: 1e6 + failed, outcome: "error" }), 1e6 + failed, true, true);
  assert.equal(learned.limit, 4, "what it began with is safe");
});

test("a batch whose items were put back says nothing about the number", () => {
  const learned = new LearnedConcurrency();
  const atMs = press(learned, 8, 0);
  for (let run = 0; run < 20; run++)
    learned.ended(record({ startedAtMs: atMs, outcome: "refused" }), atMs + 20, true, true);
  assert.equal(learned.limit, 8);
  assert.equal(learned.cause, "demand");
});

test("it never leaves 1 to 256, whatever the runs look like", () => {
  const random = seededRandom(5);
  for (let seed = 0; seed < 20; seed++) {
    const learned = new LearnedConcurrency();
    for (let run = 0; run < 500; run++) {
      const startedAtMs = 20 * run;
      const runMs = random() < 0.1 ? 0 : 20 * random() ** 3 * learned.limit;
      const inFlight = 1 + random() * learned.limit;
      const outcome = random() < 0.01 ? "error" : "ok";
      learned.ended(
        record({ startedAtMs, runMs, size: 1 + Math.floor(random() * 10), inFlight, outcome }),
        startedAtMs + runMs,
        random() < 0.9,
        random() < 0.7,
      );
      assert.ok(Number.isInteger(learned.limit) && learned.limit >= 1 && learned.limit <= 256, `${learned.limit}`);
    }
  }
});
