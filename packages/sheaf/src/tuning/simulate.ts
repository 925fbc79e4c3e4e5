import type { Batcher } from "../core/contract/batcher.ts";
import { createBatcher } from "../core/create-batcher.ts";
import { BatcherError } from "../core/contract/errors.ts";
import type { BatcherOptions, Priority } from "../core/contract/options.ts";
import { priorities } from "../core/contract/settings.ts";
import { describe } from "../shared/describe.ts";
import type { DispatchReason } from "../policies/policy.ts";
import { momentsOf, maxCalls, type Arrivals } from "./traffic/arrivals.ts";
import { share, spanMs, within } from "./traffic/checks.ts";
import { Clients, gaveUp, type Retries } from "./traffic/clients.ts";
import { Goodput } from "./goodput.ts";
import { Random } from "./traffic/random.ts";
import { noiseOf, runTimesOf, type RunTimeNoise, type SimulatedCost } from "./simulated-cost.ts";
import { ItemWeights, type Weights } from "./traffic/weights.ts";
import { latencyOf, type SimulatedLatency, type SimulationResult } from "./simulation-result.ts";
import { virtualClock, type VirtualClock } from "./virtual-clock.ts";

/** What to simulate, beside every option of `createBatcher` but `clock` and `price`; an item is its number, from 0. */
export interface SimulationOptions extends Omit<BatcherOptions<number, number>, "clock" | "price"> {
  readonly arrivals: Arrivals;
  /** Run time of a batch by its size, and by its weight. */
  readonly cost: SimulatedCost;
  /**
   * Weights of the items, which `weigh` gives to the batcher unless it is given.
   * @default every item weighs 1
   */
  readonly weights?: Weights | undefined;
  /** @default none */
  readonly noise?: RunTimeNoise | undefined;
  /**
   * Calls to make; integer, 1 … 10,000,000.
   * @default 10000, or the whole trace
   */
  readonly items?: number | undefined;
  /**
   * Share of the calls, from the first, that the figures leave out, 0 … 1.
   * @default 0.1
   */
  readonly warmUp?: number | undefined;
  /**
   * Shares of the calls with these priorities, 0 … 1, together at most 1; the rest is interactive.
   * @default all interactive
   */
  readonly priorities?: { readonly immediate?: number | undefined; readonly bulk?: number | undefined } | undefined;
  /**
   * Each call becomes an operation of a client that gives up and tries again.
   * @default none: every call waits to its end
   */
  readonly retries?: Retries | undefined;
  /**
   * A whole number.
   * @default 1
   */
  readonly seed?: number | undefined;
}

/**
 * Runs the real batcher on a virtual clock: `arrivals` call it, a batch takes what `cost` says. Seconds of traffic take
 * milliseconds, and the same seed gives the same result.
 * @throws {RangeError} on arrivals, costs or options that make no sense.
 */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const simulation = new Simulation(options);
  return simulation.run();
}

class Simulation {
  readonly #options: SimulationOptions;
  readonly #items: number;
  readonly #clock: VirtualClock = virtualClock();
  readonly #batcher: Batcher<number, number>;
  readonly #choice: Random;

  #called = 0;
  #settled = 0;
  #firstAtMs = 0;
  #lastAtMs = 0;
  // By item: its latency, NaN until it has a result; and its priority.
  readonly #latencyMs: Float64Array;
  readonly #priority: Uint8Array;
  readonly #weights: ItemWeights | undefined;
  readonly #ended = { ok: 0, timeout: 0, rejected: 0, error: 0, gaveUp: 0 };
  readonly #clients: Clients | undefined;
  readonly #goodput: Goodput | undefined;
  readonly #batchSizes = new Map<number, number>();
  readonly #reasons: Partial<Record<DispatchReason, number>> = {};
  #runs = 0;
  #ran = 0;
  #busyMs = 0;
  /** The error that invalid arrivals or costs have thrown. */
  #failure: { readonly error: unknown } | undefined;

  constructor(options: SimulationOptions) {
    if (typeof options !== "object" || options === null) {
      throw new TypeError(`simulate needs options { arrivals, cost, … }, got ${describe(options)}`);
    }
    const {
      arrivals,
      cost,
      noise = {},
      weights,
      items,
      warmUp,
      priorities = {},
      retries,
      seed = 1,
      ...batcherOptions
    } = options;
    if (typeof arrivals !== "object" || arrivals === null) {
      throw new TypeError(`arrivals must be { pattern, … }, got ${describe(arrivals)}`);
    }
    const isTrace = arrivals.pattern === "trace";
    if (isTrace && !Array.isArray(arrivals.atMs)) {
      throw new TypeError(`atMs of a trace must be an array of moments, got ${describe(arrivals.atMs)}`);
    }
    this.#options = options;
    const isCount = (number: number): boolean => Number.isInteger(number) && number >= 1 && number <= maxCalls;
    const calls = items ?? (isTrace ? arrivals.atMs.length : 10_000);
    this.#items = within("items", calls, isCount, `an integer, 1 to ${maxCalls}`);
    if (arrivals.pattern === "closed") {
      within("clients", arrivals.clients, isCount, `an integer, 1 to ${maxCalls}`);
      spanMs("thinkMs of arrivals", arrivals.thinkMs ?? 0);
    }
    within("warmUp", warmUp ?? 0.1, (number) => number >= 0 && number < 1, "a share, 0 <= warmUp < 1");
    within("seed", seed, Number.isInteger, "an integer");
    const { immediate = 0, bulk = 0 } = priorities;
    share(
      "priorities.immediate and .bulk together",
      share("priorities.immediate", immediate) + share("priorities.bulk", bulk),
    );
    // Arrivals, run times and priorities draw apart: two policies see the same arrivals.
    this.#choice = new Random(seed ^ 0x5bd1e995);
    if (retries !== undefined) {
      this.#clients = new Clients(retries, this.#clock, new Random(seed ^ 0x1b873593));
      this.#goodput = new Goodput(arrivals);
    }
    this.#latencyMs = new Float64Array(this.#items).fill(Number.NaN);
    this.#priority = new Uint8Array(this.#items);
    if (weights !== undefined) this.#weights = new ItemWeights(weights, this.#items, new Random(seed ^ 0x3c6ef372));
    const runMs = runTimesOf(cost);
    const factor = noiseOf(noise, new Random(seed ^ 0x2545f491));
    const run = async (batch: number[]): Promise<number[]> => {
      const ms =
        this.#watched(() =>
          spanMs(
            "a run time",
            runMs(
              batch.length,
              this.#clock.now(),
              this.#weights?.together(batch) ?? { sum: batch.length, heaviest: 1 },
            ) * factor(),
          ),
        ) ?? 0;
      this.#busyMs += ms;
      await this.#clock.sleep(ms);
      return batch;
    };
    this.#batcher = createBatcher<number, number>(run, {
      ...(this.#weights !== undefined && { weigh: this.#weights.of }),
      ...batcherOptions,
      clock: this.#clock,
    });
    this.#batcher.subscribe(({ size, reason }) => {
      this.#runs++;
      this.#ran += size;
      this.#batchSizes.set(size, (this.#batchSizes.get(size) ?? 0) + 1);
      this.#reasons[reason] = (this.#reasons[reason] ?? 0) + 1;
    });
  }

  async run(): Promise<SimulationResult> {
    const { arrivals, seed = 1 } = this.#options;
    const random = new Random(seed);
    if (arrivals.pattern === "closed") this.#close(arrivals.clients, arrivals.thinkMs ?? 0, random);
    else {
      const moments = momentsOf(arrivals, random);
      const next = (): number | undefined => this.#watched(moments);
      const arm = (atMs: number | undefined): void => {
        if (atMs === undefined) return;
        this.#clock.at(atMs, () => {
          let laterMs: number | undefined = atMs;
          // Calls of one moment come in one turn of the event loop.
          while (laterMs !== undefined && laterMs <= atMs) {
            void this.#call();
            laterMs = this.#called < this.#items ? next() : undefined;
          }
          arm(laterMs);
        });
      };
      arm(next());
    }
    // A policy may keep the last few forever: what still waits when nothing else happens is flushed.
    do {
      await this.#clock.idle();
      await this.#batcher.flush();
      if (this.#failure !== undefined) break;
    } while (this.#settled < this.#called || (arrivals.pattern === "closed" && this.#called < this.#items));
    await this.#batcher.close();
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.#result();
  }

  #close(clients: number, thinkMs: number, random: Random): void {
    const client = (): void => {
      if (this.#called >= this.#items) return;
      this.#clock.after(thinkMs > 0 ? random.exponential(thinkMs) : 0, () => {
        if (this.#called < this.#items) void this.#call().then(client);
      });
    };
    for (let i = 0; i < Math.min(clients, this.#items); i++) client();
  }

  /** Calls user code: an error there must not become a call's, or be lost, but end the simulation. */
  #watched<T>(of: () => T): T | undefined {
    try {
      return of();
    } catch (error) {
      this.#failure ??= { error };
      return undefined;
    }
  }

  async #call(): Promise<void> {
    const item = this.#called++;
    const calledAtMs = this.#clock.now();
    if (item === 0) this.#firstAtMs = calledAtMs;
    const { immediate = 0, bulk = 0 } = this.#options.priorities ?? {};
    const drawn = immediate + bulk > 0 ? this.#choice.uniform() : 1;
    const priority = drawn < immediate ? 0 : drawn < immediate + bulk ? 2 : 1;
    this.#priority[item] = priority;
    const named = priority === 1 ? undefined : { priority: priorities[priority]! };
    try {
      if (this.#clients === undefined) {
        await this.#batcher(item, named);
        this.#latencyMs[item] = this.#clock.now() - calledAtMs;
      } else {
        this.#goodput!.begun(calledAtMs);
        this.#latencyMs[item] = await this.#clients.operate((signal) => this.#batcher(item, { ...named, signal }));
        this.#goodput!.answered(this.#clock.now());
      }
      this.#ended.ok++;
    } catch (error) {
      this.#ended[endOf(error)]++;
    }
    this.#settled++;
    this.#lastAtMs = this.#clock.now();
  }

  #latencyByWeight(from: number): SimulationResult["latencyMsByWeight"] {
    const weights = this.#weights;
    if (weights === undefined) return undefined;
    return {
      lighter: this.#latency(from, (item) => weights.isLighter(item)),
      heavier: this.#latency(from, (item) => !weights.isLighter(item)),
    };
  }

  #result(): SimulationResult {
    const from = Math.floor(this.#called * (this.#options.warmUp ?? 0.1));
    const durationMs = this.#lastAtMs - this.#firstAtMs;
    const slots = this.#options.concurrency ?? 4;
    const latencyMsByPriority: Partial<Record<Priority, SimulatedLatency>> = {};
    for (const [code, priority] of priorities.entries()) {
      if (this.#priority.includes(code))
        latencyMsByPriority[priority] = this.#latency(from, (item) => this.#priority[item] === code);
    }
    return {
      latencyMs: this.#latency(from),
      latencyMsByPriority,
      latencyMsByWeight: this.#latencyByWeight(from),
      throughputPerS: durationMs > 0 ? (1000 * this.#ended.ok) / durationMs : 0,
      items: this.#ended,
      goodput: this.#goodput?.result(this.#called, this.#clients!.attempts),
      runs: this.#runs,
      meanBatchSize: this.#runs > 0 ? this.#ran / this.#runs : 0,
      batchSizes: new Map([...this.#batchSizes].sort(([a], [b]) => a - b)),
      reasons: this.#reasons,
      utilisation: durationMs > 0 ? this.#busyMs / (durationMs * slots) : 0,
      durationMs,
      events: this.#clock.events,
    };
  }

  #latency(from: number, counts: (item: number) => boolean = () => true): SimulatedLatency {
    const sorted = this.#latencyMs
      .subarray(from, this.#called)
      .filter((ms, i) => !Number.isNaN(ms) && counts(from + i))
      .sort();
    return latencyOf(sorted);
  }
}

function endOf(error: unknown): keyof SimulationResult["items"] {
  if (error === gaveUp) return "gaveUp";
  const code = error instanceof BatcherError ? error.code : undefined;
  return code === "TIMEOUT" ? "timeout" : code === "QUEUE_FULL" ? "rejected" : "error";
}
