import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createBatcher,
  greedy,
  type BatchContext,
  type Batcher,
  type BatcherOptions,
  type BatchRecord,
} from "../../dist/index.js";
import { ConcurrencyLearner } from "../../dist/core/dispatch/concurrency-learner.js";
import { LearnedConcurrency, type BatcherState } from "../../dist/core/dispatch/learned-concurrency.js";
import { Contention } from "../../dist/core/measure/contention.js";
import { virtualClock, type VirtualClock } from "../../dist/testing/index.js";
import { numbers } from "../support/rig.js";
import { seededRandom } from "../../dist/internal/tuning.js";

/**
 * A service that works on `places` runs side by side; more than that share the places equally, and each run above adds `drag` to the
 * work of all. A run of n takes 10 + n ms alone, and `networkMs` on the way.
 */
class Service {
  places: number;
  factor = 1;
  networkMs = 0;
  drag = 0;
  most = 0;
  readonly #clock: VirtualClock;
  #runs: { leftMs: number; resolve: () => void }[] = [];
  #atMs = 0;
  #cancel: () => void = () => undefined;

  constructor(clock: VirtualClock, places: number) {
    this.#clock = clock;
    this.places = places;
  }

  async run(size: number): Promise<void> {
    if (this.networkMs > 0) await this.#clock.sleep(this.networkMs / 2);
    await this.#work(size);
    if (this.networkMs > 0) await this.#clock.sleep(this.networkMs / 2);
  }

  get #rate(): number {
    const above = Math.max(0, this.#runs.length - this.places);
    return Math.min(1, this.places / this.#runs.length) / (1 + this.drag * above);
  }

  #work(size: number): Promise<void> {
    return new Promise((resolve) => {
      this.#advance();
      this.#runs.push({ leftMs: this.factor * (10 + size), resolve });
      this.most = Math.max(this.most, this.#runs.length);
      this.#arm();
    });
  }

  #advance(): void {
    const nowMs = this.#clock.now();
    const workedMs = this.#runs.length > 0 ? this.#rate * (nowMs - this.#atMs) : 0;
    for (const run of this.#runs) run.leftMs -= workedMs;
    this.#atMs = nowMs;
  }

  #arm(): void {
    this.#cancel();
    if (this.#runs.length === 0) return;
    const leastMs = Math.min(...this.#runs.map(({ leftMs }) => leftMs));
    this.#cancel = this.#clock.after(leastMs / this.#rate, () => {
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
  /** Called at the end of the seventh run. */
  readonly pause?: (context: BatchContext, clock: VirtualClock) => void;
}

/** Poisson calls before such a service, in batches of at most 10. Gives the batcher at the end of the calls, and the most in flight. */
async function callFor({ places, perS, forMs = 5000, options = {}, during, pause }: Trial) {
  const clock = virtualClock();
  const service = new Service(clock, places);
  let ended = 0;
  const run = async (items: number[], context: BatchContext): Promise<number[]> => {
    await service.run(items.length);
    // Just before the number would be looked at for the first time.
    if (++ended === 7) pause?.(context, clock);
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
  // The others are tries of one more.
  const settled = lost.numbers.slice(-20).filter((number) => number <= 3);
  assert.ok(settled.length >= 17, `${lost.numbers}`);
  // It is overloaded meanwhile, so that only the probes after growing pauses find the new places.
  const gained = await callFor({ places: 4, perS: 3500, forMs: 9000, during: places(8) });
  assert.ok(
    gained.numbers.slice(-20).some((number) => number >= 7),
    `${gained.numbers}`,
  );
});

test("after two minutes of a service with one place, the number is back soon", async () => {
  const { numbers } = await callFor({
    places: 8,
    perS: 1500,
    forMs: 145_000,
    options: { timeoutMs: 1000 },
    during: (_, service, clock) => {
      clock.at(10_000, () => void (service.places = 1));
      clock.at(130_000, () => void (service.places = 8));
    },
  });
  assert.ok(numbers[1290]! <= 4, `at the end of the bad time ${numbers[1290]}`);
  const backMs = 100 * (numbers.findIndex((number, index) => index >= 1300 && number >= 6) - 1300);
  assert.ok(backMs >= 0 && backMs <= 12_000, `${backMs} ms`);
});

test("places that are lost or gained, with the calls for them, are followed within a second, whatever was tried before", async () => {
  const half = await callFor({
    places: 8,
    perS: 1800,
    forMs: 7000,
    during: (_, service, clock) => clock.at(5000, () => (service.places = 4)),
  });
  const after = half.numbers.slice(60);
  assert.ok(after.filter((number) => number <= 5).length >= 8, `${half.numbers}`);

  const double = await callFor({
    places: 4,
    perS: 1800,
    forMs: 7000,
    options: { maxBatchSize: 10 },
    during: (batcher, service, clock) =>
      clock.at(5000, () => {
        service.places = 8;
        for (let atMs = 5000; atMs < 7000; atMs += 0.6) clock.at(atMs, () => void batcher(1).catch(() => undefined));
      }),
  });
  assert.ok(
    double.numbers.slice(60).every((number) => number >= 7),
    `${double.numbers}`,
  );
});

/** The mean latency of Poisson calls, `perMs` a millisecond, that begin after 5 s. */
async function meanOf(
  batcher: Batcher<number, number>,
  clock: VirtualClock,
  random: () => number,
  perMs: number,
  forMs: number,
): Promise<number> {
  const latenciesMs: number[] = [];
  const call = async (atMs: number): Promise<void> => {
    await batcher(1);
    if (atMs > 5000) latenciesMs.push(clock.now() - atMs);
  };
  const next = (atMs: number): void => {
    if (atMs > forMs) return;
    clock.at(atMs, () => {
      void call(atMs);
      next(atMs - Math.log(1 - random()) / perMs);
    });
  };
  next(0);
  await clock.idle();
  return latenciesMs.reduce((sum, ms) => sum + ms, 0) / latenciesMs.length;
}

test("runs that begin and end together, on the network and then at work, are spread until their backlog is gone", async () => {
  const clock = virtualClock();
  const service = new Service(clock, 2);
  service.networkMs = 80;
  service.drag = 0.1;
  const run = async (items: number[]): Promise<number[]> => {
    await service.run(items.length);
    return items;
  };
  const batcher = createBatcher<number, number>(run, { clock, maxBatchSize: 62 });
  // The backlog of a cold start.
  for (let waiting = 0; waiting < 620; waiting++) void batcher(1);
  // 0.64 of what two places get done.
  const meanMs = await meanOf(batcher, clock, seededRandom(1), 1.1, 15_000);
  assert.ok(meanMs < 300, `${meanMs} ms`);
});

test("where run times vary, the pace of starts leaves no place idle for long", async () => {
  const meansMs: number[] = [];
  for (let seed = 1; seed <= 3; seed++) {
    const clock = virtualClock();
    const service = new Service(clock, 4);
    service.drag = 0.15;
    const random = seededRandom(seed);
    const run = async (items: number[]): Promise<number[]> => {
      service.factor = 3 + 3 * random();
      await service.run(items.length);
      return items;
    };
    const batcher = createBatcher<number, number>(run, { clock, maxBatchSize: 8 });
    // 0.9 of what four places get done.
    meansMs.push(await meanOf(batcher, clock, random, 0.355, 60_000));
  }
  assert.ok(Math.max(...meansMs) < 300, `${meansMs} ms`);
});

/** When the runs of calls that all come at once start, in ms; each takes 100 ms. */
async function startsOf(batches: number, options: BatcherOptions<number, number>): Promise<number[]> {
  const clock = virtualClock();
  const startsAtMs: number[] = [];
  const run = async (items: number[]): Promise<number[]> => {
    startsAtMs.push(clock.now());
    await clock.sleep(100);
    return items;
  };
  const batcher = createBatcher<number, number>(run, { clock, maxBatchSize: 10, ...options });
  for (let item = 0; item < 10 * batches; item++) void batcher(item);
  await clock.idle();
  return startsAtMs.map((atMs) => atMs - startsAtMs[0]!);
}

test("a short burst, and any with a number that is given, starts in every slot at once", async () => {
  assert.deepEqual(await startsOf(6, {}), [0, 0, 0, 0, 100, 100]);
  const given = await startsOf(40, { concurrency: 4 });
  assert.deepEqual(
    given,
    Array.from({ length: 40 }, (_, i) => 100 * Math.floor(i / 4)),
  );
  const learned = await startsOf(40, {});
  assert.ok(new Set(learned).size > 12, `${learned}`);
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

const pressed: BatcherState = { isShort: true, isPressed: true, isPaused: false, isOverloaded: false };

/** Runs one after the other, with every slot taken, a full batch waiting, and no run longer than the others. */
function press(learned: LearnedConcurrency, runs: number, startAtMs: number, now: BatcherState = pressed): number {
  let atMs = startAtMs;
  for (let run = 0; run < runs; run++) {
    learned.ended(record({ startedAtMs: atMs, inFlight: learned.limit }), atMs + 20, now);
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
  learned.failed({ startedAtMs: laterMs }, laterMs + 20);
  assert.equal(learned.limit, before / 2);
  assert.equal(learned.cause, "failure");
  // Those that failed with it began under the old number.
  learned.failed({ startedAtMs: laterMs }, laterMs + 21);
  assert.equal(learned.limit, before / 2);
  const quietMs = press(learned, 2000, laterMs + 30);
  assert.equal(learned.limit, before / 2, "no probing for a minute");
  press(learned, 2000, quietMs + 30_000);
  assert.ok(learned.limit > before / 2, `${learned.limit}`);
  for (let failed = 0; failed < 20; failed++) learned.failed({ startedAtMs: 1e6 + failed }, 1e6 + failed);
  assert.equal(learned.limit, 4, "what it began with is safe");
});

test("a number that fails as soon as it is tried is tried again after 1, 2, 4 … minutes, at most an hour, until it works", () => {
  const learned = new LearnedConcurrency();
  const pauses: number[] = [];
  let failedAtMs = 0;
  let atMs = 0;
  // Above 10 the service fails at once.
  while (pauses.length < 9) {
    if (learned.limit <= 10) {
      atMs = press(learned, 10, atMs) + 800;
      continue;
    }
    pauses.push((atMs - failedAtMs) / 60_000);
    learned.failed({ startedAtMs: atMs }, atMs);
    failedAtMs = atMs;
  }
  for (const [index, least] of [0, 1, 2, 4, 8, 16, 32, 60, 60].entries())
    assert.ok(pauses[index]! >= least && pauses[index]! <= 1.25 * least + 1, `${index}: ${pauses[index]} of ${least}`);
  // The service has grown: the number works for a minute, and after another failure is tried again after a minute.
  while (atMs < failedAtMs + 2 * 3_600_000) atMs = press(learned, 10, atMs) + 800;
  assert.ok(learned.limit > 10, `${learned.limit}`);
  learned.failed({ startedAtMs: atMs }, atMs);
  const before = learned.limit;
  const againMs = press(learned, 2990, atMs);
  assert.equal(learned.limit, before);
  press(learned, 200, againMs);
  assert.ok(learned.limit > before, `${learned.limit} of ${before}`);
});

test("where no run ends any more, the number goes back to what worked, and stays there once they do", async (t) => {
  t.mock.method(console, "warn", () => {});
  const clock = virtualClock();
  // Each run needs two of ten connections, one after the other.
  let free = 10;
  let waiting: (() => void)[] = [];
  let most = 0;
  let inFlight = 0;
  const connect = (): Promise<void> => {
    if (free === 0) return new Promise((resolve) => waiting.push(resolve));
    free--;
    return Promise.resolve();
  };
  const release = (): void => {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  };
  const run = async (items: number[]): Promise<number[]> => {
    most = Math.max(most, ++inFlight);
    await connect();
    await clock.sleep(10);
    await connect();
    await clock.sleep(10);
    inFlight--;
    release();
    release();
    return items;
  };
  const batcher = createBatcher(run, { clock, maxBatchSize: 8 });
  let isOver = false;
  for (let client = 0; client < 400; client++)
    void (async () => {
      while (!isOver) await batcher(client);
    })();
  await clock.sleep(30_000);
  assert.equal(most, 16, "it stands still");
  assert.deepEqual(batcher.stats().concurrency, { now: 8, cause: "failure" });
  // Somebody adds connections for a moment.
  const stuck = waiting;
  waiting = [];
  for (const go of stuck) go();
  free = 10 - stuck.length;
  most = 0;
  await clock.sleep(50_000);
  assert.ok(batcher.stats().items.ok > 10_000, `${batcher.stats().items.ok}`);
  assert.ok(most <= 8, `${most}`);
  isOver = true;
  await clock.idle();
});

test("a batch whose items were put back says nothing about the number", () => {
  const learned = new LearnedConcurrency();
  const atMs = press(learned, 8, 0);
  const watched = {
    dispatcher: { inFlight: 8 },
    queue: { size: 9 },
    throttle: { resumesAtMs: 0 },
    overload: undefined,
  };
  const learner = new ConcurrencyLearner(learned, { ...watched, settings: { maxBatchSize: 1 } });
  for (let run = 0; run < 20; run++) learner.learn(record({ startedAtMs: atMs, outcome: "refused" }), atMs + 20, false);
  assert.equal(learned.limit, 8);
  assert.equal(learned.cause, "demand");
});

/** A batcher whose number has risen to 16 or more, and then `act` ends one of its runs. */
async function withSixteen(
  options: BatcherOptions<number, number>,
  act: (context: BatchContext, items: number[]) => unknown,
) {
  const clock = virtualClock();
  let item = 0;
  let acting: number | null | undefined;
  const run = async (items: number[], context: BatchContext): Promise<number[]> => {
    await clock.sleep(20);
    if (acting === undefined) return items;
    acting ??= context.batchId;
    if (acting === context.batchId) await act(context, items);
    return items;
  };
  const batcher = createBatcher<number, number>(run, { clock, maxBatchSize: 10, policy: greedy(), ...options });
  const callUntil = async (isEnough: () => boolean): Promise<void> => {
    const call = (): void => {
      if (isEnough()) return;
      while (batcher.stats().queued < 100) void batcher(item++).catch(() => undefined);
      clock.at(clock.now() + 1, call);
    };
    call();
    await clock.idle();
  };
  await callUntil(() => batcher.stats().concurrency!.now >= 16);
  const before = batcher.stats().concurrency!.now;
  acting = null;
  const { batches } = batcher.stats();
  await callUntil(() => batcher.stats().batches > batches);
  return { before, after: batcher.stats().concurrency! };
}

const failures: Record<string, [BatcherOptions<number, number>, (context: BatchContext, items: number[]) => unknown]> =
  {
    "that the service refuses": [{}, () => Promise.reject(Object.assign(new Error("no"), { status: 503 }))],
    "that the service refuses after it answered an item": [
      {},
      (context) => {
        context.answer(0, 1);
        throw Object.assign(new Error("no"), { status: 503 });
      },
    ],
    "that exceeds runTimeoutMs": [{ runTimeoutMs: 100 }, () => new Promise(() => undefined)],
    "that exceeds runTimeoutMs after it answered an item": [
      { runTimeoutMs: 100 },
      (context) => {
        context.answer(0, 1);
        return new Promise(() => undefined);
      },
    ],
    "whose parts all pass": [
      { onBatchError: "bisect" },
      (_, items) => (items.length === 10 ? Promise.reject(new Error("busy")) : undefined),
    ],
  };
for (const [name, [options, act]] of Object.entries(failures)) {
  test(`a run ${name} halves the number`, async () => {
    const { before, after } = await withSixteen(options, act);
    assert.deepEqual(after, { now: Math.round(before / 2), cause: "failure" });
  });
}

test("a caller whose item makes the function throw, over and over, teaches nothing; runs that fail together do", async () => {
  const clock = virtualClock();
  let isDown = false;
  const batcher = createBatcher<string, string>(
    async (items) => {
      await clock.sleep(20);
      if (isDown || items.includes("bad")) throw new Error("cannot read it");
      return items;
    },
    { clock, maxBatchSize: 8, policy: greedy() },
  );
  const endsAtMs = 10_000;
  let failed = 0;
  const call = async (item: string): Promise<void> => {
    while (clock.now() < endsAtMs) await batcher(item).catch(() => failed++);
  };
  for (let i = 0; i < 255; i++) void call("good");
  void call("bad");
  let beside = batcher.stats().concurrency!;
  clock.at(9000, () => {
    beside = batcher.stats().concurrency!;
    isDown = true;
  });
  clock.at(9100, () => assert.equal(batcher.stats().concurrency!.cause, "failure"));
  await clock.idle();
  assert.ok(failed > 100, `${failed}`);
  assert.ok(beside.now >= 16 && beside.cause === "demand", JSON.stringify(beside));
});

test("a bisected batch that had bad items says nothing about the number", async () => {
  let bad: number | undefined;
  const { before, after } = await withSixteen({ onBatchError: "bisect" }, (_, items) => {
    bad ??= items[0];
    if (items.includes(bad!)) throw new Error("bad");
  });
  assert.ok(after.now >= before && after.cause !== "failure", JSON.stringify(after));
});

test("during a pause the number stays", () => {
  const learned = new LearnedConcurrency();
  press(learned, 2000, 0, { ...pressed, isPaused: true });
  assert.equal(learned.limit, 4);
  press(learned, 8, 40_000);
  assert.ok(learned.limit > 4);
});

test("a pause that a run asks for freezes the number until it ends", async () => {
  const numbers: number[] = [];
  let endsAtMs = -Infinity;
  await callFor({
    places: 40,
    perS: 8000,
    forMs: 500,
    during: (batcher, _, clock) => {
      batcher.subscribe(() => {
        if (clock.now() < endsAtMs) numbers.push(batcher.stats().concurrency!.now);
      });
    },
    pause: (context, clock) => {
      context.pause(200);
      endsAtMs = clock.now() + 200;
    },
  });
  assert.ok(numbers.length >= 3, `${numbers}`);
  assert.equal(new Set(numbers).size, 1, `${numbers}`);
});

test("under standing overload the number stays where more runs at once would not do more", async () => {
  const shown: number[] = [];
  const { service } = await callFor({
    places: 4,
    perS: 3000,
    forMs: 5000,
    during: (batcher, _, clock) => {
      for (let atMs = 0; atMs < 5000; atMs += 10)
        clock.at(atMs, () => {
          const { overload, concurrency } = batcher.stats();
          if (overload !== null && overload !== undefined) shown.push(concurrency!.now);
        });
    },
  });
  assert.ok(shown.length > 200, `overload at ${shown.length} looks`);
  const changes = shown.filter((number, i) => i > 0 && number !== shown[i - 1]);
  // A look at 3 lasts for a few runs.
  const below = shown.filter((number) => number < 4);
  assert.ok(changes.length <= 16 && below.length < 0.1 * shown.length, `${shown[0]} ${changes}`);
  assert.ok(service.most <= 8, `${service.most}`);
});

/** The causes of its changes while full batches wait, where every run meets as many as there may be. */
function causesOf(runMs: (inFlight: number) => number, isOverloaded: boolean): Set<string> {
  const learned = new LearnedConcurrency();
  const causes = new Set<string>();
  for (let run = 0; run < 1000; run++) {
    const inFlight = learned.limit;
    const now = { ...pressed, isOverloaded };
    learned.ended(record({ startedAtMs: 100 * run, runMs: runMs(inFlight), inFlight }), 100 * run + 50, now);
    causes.add(learned.cause);
  }
  return causes;
}

test("a lower number is tried where no run has met fewer, under standing overload too, unless runs do not get longer", () => {
  for (const isOverloaded of [false, true]) {
    const onePlace = causesOf((inFlight) => 10 * inFlight, isOverloaded);
    assert.ok(onePlace.has("probe"), [...onePlace].join(" "));
    const manyPlaces = causesOf(() => 20, isOverloaded);
    assert.ok(!manyPlaces.has("probe"), [...manyPlaces].join(" "));
  }
});

test("under standing overload the number rises while runs do not get longer, or it would last", () => {
  const learned = new LearnedConcurrency();
  press(learned, 200, 0, { ...pressed, isOverloaded: true });
  assert.ok(learned.limit >= 32, `${learned.limit}`);
});

test("under standing overload the number falls where fewer runs at once would do more", () => {
  const learned = new LearnedConcurrency();
  let nowMs = 0;
  const press16 = (places: number, runs: number, isOverloaded: boolean): void => {
    for (let run = 0; run < runs; run++) {
      const inFlight = learned.limit * (1 - 0.3 * (run % 2));
      const runMs = inFlight <= places ? 20 : (20 * inFlight * (1 + 0.1 * (inFlight - places))) / places;
      learned.ended(record({ startedAtMs: nowMs, runMs, inFlight }), nowMs + runMs, { ...pressed, isOverloaded });
      nowMs += runMs;
    }
  };
  press16(16, 100, false);
  const before = learned.limit;
  press16(8, 200, true);
  assert.ok(before >= 14 && learned.limit <= 11, `${before}, then ${learned.limit}`);
});

test("past the places of a service that slows down steeply, runs that meet a few more are no change of it", () => {
  const contention = new Contention();
  const observe = (inFlight: number, times: number, factor = 1): void => {
    const slowdown = Math.max(1, inFlight / 48) * (1 + 0.1 * Math.max(0, inFlight - 48));
    for (let run = 0; run < times; run++) contention.observe(inFlight, 10, factor * 300 * slowdown);
  };
  for (const inFlight of [24, 32, 40, 48, 52, 60]) observe(inFlight, 16);
  contention.fit(48);
  contention.change = 0;
  observe(52, 12);
  // Half as long again.
  observe(57, 12);
  assert.equal(contention.change, 0);
  observe(57, 12, 2);
  assert.equal(contention.change, 1);
});

test("once runs have stood in a queue, the number climbs by half at most", () => {
  const learned = new LearnedConcurrency();
  const limits = [learned.limit];
  let nowMs = 0;
  const pressFor = (runs: number, places: number): void => {
    for (let run = 0; run < runs; run++) {
      const inFlight = learned.limit;
      const runMs = 20 * Math.max(1, inFlight / places);
      learned.ended(record({ startedAtMs: nowMs, runMs, inFlight }), nowMs + runMs, pressed);
      nowMs += runMs;
      if (learned.limit !== limits.at(-1)) limits.push(learned.limit);
    }
  };
  pressFor(200, 16);
  const fallsAt = limits.findIndex((limit, i) => i > 0 && limit < limits[i - 1]!);
  assert.deepEqual(limits.slice(0, fallsAt), [4, 8, 16, 32], `${limits}`);
  // More places than ever needed.
  limits.length = 0;
  limits.push(learned.limit);
  pressFor(2000, 256);
  assert.ok(learned.limit > 64, `${limits}`);
  const steps = limits.slice(1).map((limit, i) => limit / limits[i]!);
  assert.ok(Math.max(...steps) <= 1.6, `${limits}`);
});

test("what did not pay is tried again after longer and longer pauses", () => {
  const learned = new LearnedConcurrency();
  const rises: number[] = [];
  let nowMs = 0;
  for (let run = 0; run < 6000; run++) {
    const before = learned.limit;
    // Four places: the mean in flight wanders, as in a stream of calls.
    const inFlight = before * (0.7 + 0.3 * ((run % 7) / 6));
    const runMs = 5 * Math.max(4, inFlight);
    learned.ended(record({ startedAtMs: nowMs, runMs, inFlight }), nowMs + runMs, pressed);
    nowMs += runMs;
    if (learned.limit > before) rises.push(run);
  }
  const gaps = rises.slice(1).map((run, i) => run - rises[i]!);
  assert.ok(rises.length >= 4, `${rises}`);
  assert.ok(gaps.at(-1)! >= 4 * Math.min(...gaps) && rises.length < 40, `${rises}`);
});

for (const [name, factor] of [
  ["slower", 4],
  ["faster", 0.25],
] as const) {
  test(`a service that becomes ${name} keeps its number within the bounds`, async () => {
    const { numbers } = await callFor({
      places: 8,
      perS: factor > 1 ? 800 : 2000,
      forMs: 6000,
      during: (_, service, clock) => clock.at(2000, () => (service.factor = factor)),
    });
    const settled = numbers.slice(-20);
    assert.ok(
      settled.every((number) => number <= 16),
      `${numbers}`,
    );
  });
}

test("it never leaves 1 to 256, whatever the runs look like", () => {
  const random = seededRandom(5);
  for (let seed = 0; seed < 20; seed++) {
    const learned = new LearnedConcurrency();
    for (let run = 0; run < 300; run++) {
      const startedAtMs = 20 * run;
      const runMs = random() < 0.1 ? 0 : 20 * random() ** 3 * learned.limit;
      const inFlight = 1 + random() * learned.limit;
      const endedAtMs = startedAtMs + runMs;
      if (random() < 0.01) learned.failed({ startedAtMs }, endedAtMs);
      else
        learned.ended(record({ startedAtMs, runMs, size: 1 + Math.floor(random() * 10), inFlight }), endedAtMs, {
          isShort: random() < 0.9,
          isPressed: random() < 0.7,
          isPaused: random() < 0.1,
          isOverloaded: random() < 0.2,
        });
      assert.ok(Number.isInteger(learned.limit) && learned.limit >= 1 && learned.limit <= 256, `${learned.limit}`);
    }
  }
});

test("a stall of an hour under a backlog does not hold the batches after it", async () => {
  const clock = virtualClock();
  let stallEndsAtMs = -Infinity;
  const run = async (items: number[]): Promise<number[]> => {
    await clock.sleep(Math.max(20, stallEndsAtMs - clock.now()));
    return items;
  };
  const batcher = createBatcher(run, { clock, maxBatchSize: 4, maxQueueSize: Infinity });
  const calls = numbers(100_000).map((item) => batcher(item));
  await clock.sleep(300);
  stallEndsAtMs = clock.now() + 3_600_000;
  await clock.sleep(3_600_000);
  assert.ok(batcher.pending.queued > 10_000, "nothing is left to pace");
  await clock.sleep(60_000);
  assert.equal(batcher.pending.queued, 0);
  await Promise.all(calls);
});
