import type { Batcher } from "../core/contract/batcher.ts";
import type { Executor } from "../core/contract/executor.ts";
import { assembleBatcher } from "../core/assemble-batcher.ts";
import { BatcherError } from "../core/contract/errors.ts";
import { firstConcurrency, type BatcherOptions } from "../core/contract/options.ts";
import { laneOf, priorities, type Lane } from "../core/contract/settings.ts";
import { check, oneOf } from "../shared/checks.ts";
import { describe } from "../shared/describe.ts";
import { auto } from "../policies/auto/index.ts";
import type { DispatchReason } from "../policies/policy.ts";
import { momentsOf, maxCalls, type Arrivals } from "./traffic/arrivals.ts";
import { checkPattern, isList, share, spanMs, within } from "./traffic/checks.ts";
import { Clients, gaveUp } from "./traffic/clients.ts";
import { Goodput } from "./goodput.ts";
import { Autoscaler, type Load } from "./scaling/autoscaler.ts";
import { scalingSettings, type Scaling, type SimulatedWorkers } from "./scaling/scaling.ts";
import { Random } from "./traffic/random.ts";
import { noiseOf, runTimesOf } from "./simulated-cost.ts";
import { TenantTraffic } from "./traffic/tenants.ts";
import { ItemWeights } from "./traffic/weights.ts";
import { recordCalls } from "./record/record-calls.ts";
import { Outcomes } from "./outcomes.ts";
import type { SimulationOptions } from "./simulation-options.ts";
import type { SimulatedEnds, SimulationResult } from "./simulation-result.ts";
import { virtualClock, type VirtualClock } from "../testing/virtual-clock.ts";

/**
 * Runs the real batcher on a virtual clock: calls come as `arrivals` says, and a batch takes as long as `cost` says. Seconds of
 * traffic take milliseconds, and the same seed gives the same result.
 * @throws {RangeError} on arrivals, costs or options that make no sense.
 * @experimental It may change in any minor version.
 */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  return new Simulation(options).run();
}

/**
 * Like `simulate`, with workers that come and go, whose slots replace `concurrency`.
 * @throws {TypeError | RangeError} as `simulate` does, and for invalid scaling.
 */
export async function simulateScaled(
  options: SimulationOptions,
  scaling: Scaling,
): Promise<{ readonly result: SimulationResult; readonly workers: SimulatedWorkers }> {
  const simulation = new Simulation(options, scaling);
  const result = await simulation.run();
  return { result, workers: simulation.workers()! };
}

/** Like `simulate`; `write` gets the lines of a record of its calls. */
export async function simulateRecorded(
  options: SimulationOptions,
  write: (line: string) => void,
): Promise<SimulationResult> {
  return new Simulation(options, undefined, write).run();
}

type BatchFunction = (batch: number[]) => Promise<number[]>;

class Simulation {
  readonly #options: SimulationOptions;
  readonly #items: number;
  readonly #clock: VirtualClock = virtualClock();
  readonly #batcher: Batcher<number, number>;
  readonly #autoscaler: Autoscaler | undefined;
  readonly #slotsPerWorker: number;
  readonly #choice: Random;

  #called = 0;
  #settled = 0;
  #firstAtMs = 0;
  #lastAtMs = 0;
  readonly #outcomes: Outcomes;
  readonly #weights: ItemWeights | undefined;
  readonly #tenants: TenantTraffic | undefined;
  readonly #clients: Clients | undefined;
  readonly #goodput: Goodput | undefined;
  readonly #trace: Extract<Arrivals, { pattern: "trace" }> | undefined;
  readonly #batchSizes = new Map<number, number>();
  readonly #reasons: Partial<Record<DispatchReason, number>> = {};
  #endRecord: () => void = () => undefined;
  #runs = 0;
  #ran = 0;
  #busyMs = 0;
  /** Runs in flight, and since when the number has been this. */
  #inFlight = 0;
  #inFlightFromAtMs = 0;
  /** The error that invalid arrivals or costs have thrown. */
  #failure: { readonly error: unknown } | undefined;

  constructor(options: SimulationOptions, scaling?: Scaling, write?: (line: string) => void) {
    if (typeof options !== "object" || options === null) {
      throw new TypeError(`simulate needs options { arrivals, cost, … }, got ${describe(options)}`);
    }
    const {
      arrivals,
      cost,
      noise = {},
      weights,
      tenants,
      tenantKey = "fairKey",
      items,
      warmUp,
      priorities = {},
      retries,
      seed = 1,
      ...batcherOptions
    } = options;
    if (tenants !== undefined && arrivals !== undefined) throw new TypeError("tenants and arrivals cannot be combined");
    if (tenants === undefined) checkPattern("arrivals", arrivals);
    const isTrace = arrivals?.pattern === "trace";
    if (isTrace) check(isList(arrivals.atMs), "atMs of a trace", "an array of moments", arrivals.atMs, TypeError);
    this.#options = options;
    this.#trace = isTrace ? arrivals : undefined;
    const isCount = (number: number): boolean => Number.isInteger(number) && number >= 1 && number <= maxCalls;
    this.#items = within(
      "items",
      items ?? (isTrace ? arrivals.atMs.length : 10_000),
      isCount,
      `an integer, 1 to ${maxCalls}`,
    );
    if (arrivals?.pattern === "closed") {
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
    // Arrivals, run times and priorities draw from separate streams, so that two policies see the same arrivals.
    this.#choice = new Random(seed ^ 0x5bd1e995);
    if (retries !== undefined) {
      this.#clients = new Clients(retries, this.#clock, seed ^ 0x1b873593);
      this.#goodput = new Goodput(arrivals?.pattern === "surge" ? arrivals : undefined);
    }
    this.#outcomes = new Outcomes(this.#items);
    oneOf("fairKey", "groupKey", "none")("tenantKey", tenantKey);
    if (tenants !== undefined) this.#tenants = new TenantTraffic(tenants, seed);
    if (weights !== undefined) this.#weights = new ItemWeights(weights, this.#items, seed ^ 0x3c6ef372);
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
              this.#inFlight + 1,
            ) * factor(),
          ),
        ) ?? 0;
      this.#count(1);
      await this.#clock.sleep(ms);
      this.#count(-1);
      return batch;
    };
    this.#slotsPerWorker = scaling?.slotsPerWorker ?? 1;
    if (scaling !== undefined) {
      if (options.concurrency !== undefined) throw new TypeError("scaling and concurrency cannot be combined");
      this.#autoscaler = new Autoscaler(scalingSettings(scaling), this.#clock, () => this.#load());
    }
    const settings: BatcherOptions<number, number> = {
      ...(this.#weights !== undefined && { weigh: this.#weights.of }),
      ...(this.#tenants !== undefined && tenantKey !== "none" && { [tenantKey]: this.#tenants.keyOf }),
      // Simulated run times do not depend on other runs, so a learned number would only rise.
      ...(scaling === undefined && { concurrency: firstConcurrency }),
      ...batcherOptions,
      clock: this.#clock,
    };
    // A simulated run never waits for another, so a long one is not stuck.
    this.#batcher = assembleBatcher<number, number>(this.#executorOf(run), settings, auto, Infinity);
    if (write !== undefined) this.#endRecord = recordCalls(this.#batcher, write);
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
    if (arrivals?.pattern === "closed") this.#close(arrivals.clients, arrivals.thinkMs ?? 0, random);
    else {
      const moments = this.#tenants?.next ?? momentsOf(arrivals!, random);
      const next = (): number | undefined => this.#watched(moments);
      const arm = (atMs: number | undefined): void => {
        if (atMs === undefined) return this.#autoscaler?.stop();
        this.#clock.at(atMs, () => {
          let laterMs: number | undefined = atMs;
          // Calls at the same moment come in one turn of the event loop.
          while (laterMs !== undefined && laterMs <= atMs) {
            void this.#call();
            laterMs = this.#called < this.#items ? next() : undefined;
          }
          arm(laterMs);
        });
      };
      arm(next());
    }
    // A policy may hold the last items forever: flush them once nothing else happens.
    do {
      await this.#clock.idle();
      await this.#batcher.flush();
      if (this.#failure !== undefined) break;
    } while (this.#settled < this.#called || (arrivals?.pattern === "closed" && this.#called < this.#items));
    this.#endRecord();
    await this.#batcher.close();
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.#result();
  }

  /** A run has begun, or ended. */
  #count(change: 1 | -1): void {
    const nowMs = this.#clock.now();
    this.#busyMs += this.#inFlight * (nowMs - this.#inFlightFromAtMs);
    this.#inFlightFromAtMs = nowMs;
    this.#inFlight += change;
  }

  #load(): Load {
    const { slotsNeeded } = this.#batcher.stats();
    const busyMs = this.#busyMs + this.#inFlight * (this.#clock.now() - this.#inFlightFromAtMs);
    return { queued: this.#batcher.pending.queued, busyMs, slotsNeeded: slotsNeeded?.slots };
  }

  #executorOf(run: BatchFunction): BatchFunction | Executor<number, number> {
    const autoscaler = this.#autoscaler;
    if (autoscaler === undefined) return run;
    const done = async (): Promise<void> => undefined;
    return {
      get slots() {
        return autoscaler.slots;
      },
      ready: done,
      run: (items) => run([...items]),
      close: done,
    };
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

  /** Calls user code. An error in it ends the simulation, instead of failing a call or being lost. */
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
    if (this.#called === this.#items) this.#autoscaler?.stop();
    const calledAtMs = this.#clock.now();
    if (item === 0) this.#firstAtMs = calledAtMs;
    const lane = this.#laneOf(item);
    const timeoutMs = this.#trace?.timeoutsMs?.[item] || undefined;
    const named = lane === 1 && timeoutMs === undefined ? undefined : { priority: priorities[lane]!, timeoutMs };
    this.#outcomes.called(item, calledAtMs, lane);
    try {
      if (this.#clients === undefined) {
        await this.#batcher(item, named);
        this.#outcomes.answered(item, this.#clock.now() - calledAtMs);
      } else {
        this.#goodput!.begun(calledAtMs);
        const latencyMs = await this.#clients.operate((signal) => this.#batcher(item, { ...named, signal }));
        this.#outcomes.answered(item, latencyMs);
        this.#goodput!.answered(this.#clock.now());
      }
    } catch (error) {
      this.#outcomes.ended(item, endOf(error));
    }
    this.#settled++;
    this.#lastAtMs = this.#clock.now();
  }

  /** The lane of the item's tenant, or a drawn one. */
  #laneOf(item: number): Lane {
    const own = this.#tenants?.kindOf(item).priority;
    if (own !== undefined) return laneOf(own);
    const traced = this.#trace?.lanes?.[item];
    if (traced !== undefined) return traced as Lane;
    const { immediate = 0, bulk = 0 } = this.#options.priorities ?? {};
    const drawn = immediate + bulk > 0 ? this.#choice.uniform() : 1;
    return drawn < immediate ? 0 : drawn < immediate + bulk ? 2 : 1;
  }

  #latencyByWeight(from: number): SimulationResult["latencyMsByWeight"] {
    const weights = this.#weights;
    if (weights === undefined) return undefined;
    return {
      lighter: this.#outcomes.latency(from, (item) => weights.isLighter(item)),
      heavier: this.#outcomes.latency(from, (item) => !weights.isLighter(item)),
    };
  }

  #byTenant(from: number): SimulationResult["tenants"] {
    const tenants = this.#tenants;
    if (tenants === undefined) return undefined;
    const figures = tenants.kinds.map((kind) => {
      const isOf = (item: number): boolean => tenants.kindOf(item) === kind;
      const figuresOf = {
        items: this.#outcomes.endsOf(from, isOf),
        latencyMs: this.#outcomes.latency(from, isOf),
        latencyMsBySecond: this.#outcomes.latencyBySecond(isOf),
        itemsBySecond: this.#outcomes.endsBySecond(isOf),
      };
      return [kind.name, figuresOf] as const;
    });
    return Object.fromEntries(figures);
  }

  workers(): SimulatedWorkers | undefined {
    return this.#autoscaler?.workers(this.#lastAtMs);
  }

  #result(): SimulationResult {
    const from = Math.floor(this.#called * (this.#options.warmUp ?? 0.1));
    const durationMs = this.#lastAtMs - this.#firstAtMs;
    const { concurrency = firstConcurrency } = this.#options;
    const workers = this.workers();
    const slotMs =
      workers === undefined ? durationMs * concurrency : 1000 * workers.workerSeconds * this.#slotsPerWorker;
    const outcomes = this.#outcomes;
    return {
      latencyMs: outcomes.latency(from),
      byPriority: outcomes.byPriority(from),
      latencyMsByWeight: this.#latencyByWeight(from),
      tenants: this.#byTenant(from),
      throughputPerS: durationMs > 0 ? (1000 * outcomes.ends.ok) / durationMs : 0,
      items: outcomes.ends,
      goodput: this.#goodput?.result(this.#called, this.#clients!.attempts),
      runs: this.#runs,
      meanBatchSize: this.#runs > 0 ? this.#ran / this.#runs : 0,
      batchSizes: new Map([...this.#batchSizes].sort(([a], [b]) => a - b)),
      reasons: this.#reasons,
      utilisation: slotMs > 0 ? this.#busyMs / slotMs : 0,
      durationMs,
      events: this.#clock.events,
    };
  }
}

function endOf(error: unknown): keyof SimulatedEnds {
  if (error === gaveUp) return "gaveUp";
  const code = error instanceof BatcherError ? error.code : undefined;
  return code === "TIMEOUT" ? "timeout" : code === "QUEUE_FULL" ? "rejected" : "error";
}
