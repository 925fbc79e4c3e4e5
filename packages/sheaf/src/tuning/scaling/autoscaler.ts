import type { Clock } from "../../core/runtime/runtime.ts";
import type { ScalingSettings, SimulatedWorkers } from "./scaling.ts";

/** The figures that an autoscaler looks at. */
export interface Load {
  /** Items waiting. */
  readonly queued: number;
  /** Total run time so far, over all slots. */
  readonly busyMs: number;
  /** `stats().slotsNeeded` of the batcher; undefined while it is unknown. */
  readonly slotsNeeded: number | undefined;
}

/** A smaller difference from the target changes nothing, as in Kubernetes. */
const tolerance = 0.1;

/** Adds and removes the workers of a simulation: adds at once, and removes workers that no recent decision asked for. */
export class Autoscaler {
  readonly #settings: ScalingSettings;
  readonly #clock: Clock;
  readonly #load: () => Load;
  /** When each worker is ready; ascending. */
  readonly #readyAtMs: number[];
  readonly #changes: [atMs: number, workers: number][];
  /** Workers that decisions asked for, the latest last. */
  #asked: { readonly atMs: number; readonly workers: number }[] = [];
  #busyMs = 0;
  #cancel: (() => void) | undefined;

  constructor(settings: ScalingSettings, clock: Clock, load: () => Load) {
    this.#settings = settings;
    this.#clock = clock;
    this.#load = load;
    this.#readyAtMs = new Array<number>(this.#within(settings.schedule?.(0) ?? 1)).fill(0);
    this.#changes = [[0, this.#readyAtMs.length]];
    this.#decideLater();
  }

  /** Batches at once that the ready workers run. */
  get slots(): number {
    const nowMs = this.#clock.now();
    let ready = 0;
    for (const atMs of this.#readyAtMs) if (atMs <= nowMs) ready++;
    return ready * this.#settings.slotsPerWorker;
  }

  stop(): void {
    this.#cancel?.();
  }

  /** Of all workers until `endAtMs`. */
  workers(endAtMs: number): SimulatedWorkers {
    const workerMs = this.#changes.reduce((sum, [atMs, workers], at) => {
      const stepEndsAtMs = Math.min(endAtMs, this.#changes[at + 1]?.[0] ?? endAtMs);
      return sum + workers * Math.max(0, stepEndsAtMs - atMs);
    }, 0);
    return { workerSeconds: workerMs / 1000, changes: this.#changes };
  }

  #decideLater(): void {
    this.#cancel = this.#clock.after(this.#settings.everyMs, () => {
      this.#decide(this.#clock.now());
      this.#decideLater();
    });
  }

  #decide(nowMs: number): void {
    const { downAfterMs, startUpMs, schedule } = this.#settings;
    const wanted = this.#within(this.#wanted(nowMs));
    this.#asked = this.#asked.filter(({ atMs }) => atMs > nowMs - downAfterMs);
    this.#asked.push({ atMs: nowMs, workers: wanted });
    const workers = this.#readyAtMs.length;
    // A schedule is deliberate, so it needs no delay against chance.
    const asked = schedule === undefined ? Math.max(...this.#asked.map((each) => each.workers)) : wanted;
    const next = wanted > workers ? wanted : Math.min(workers, asked);
    if (next === workers) return;
    while (this.#readyAtMs.length < next) this.#readyAtMs.push(nowMs + (schedule === undefined ? startUpMs : 0));
    this.#readyAtMs.length = next;
    this.#changes.push([nowMs, next]);
  }

  #wanted(nowMs: number): number {
    const { by, target, schedule, slotsPerWorker, everyMs } = this.#settings;
    const workers = this.#readyAtMs.length;
    if (schedule !== undefined) return schedule(nowMs);
    const { queued, busyMs, slotsNeeded } = this.#load();
    const busyShare = (busyMs - this.#busyMs) / everyMs / Math.max(1, this.slots);
    this.#busyMs = busyMs;
    if (by === "queue") return queued / target;
    if (by === "slots-needed") return slotsNeeded === undefined ? workers : slotsNeeded / slotsPerWorker / target;
    const ratio = busyShare / target;
    return Math.abs(ratio - 1) <= tolerance ? workers : workers * ratio;
  }

  #within(workers: number): number {
    const { minWorkers, maxWorkers } = this.#settings;
    return Math.min(maxWorkers, Math.max(minWorkers, Math.ceil(workers - 1e-9)));
  }
}
