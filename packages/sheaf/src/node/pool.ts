import { systemClock, type Clock } from "../core/clock.ts";
import { BatcherError } from "../core/errors.ts";
import type { BatchContext, Executor } from "../core/executor.ts";
import { Instance, type InstanceEvents, type InstanceInfo, type InstanceRole, type Run } from "./instance.ts";
import type { OpenLink } from "./link.ts";
import { Quarantine } from "./quarantine.ts";
import { RestartBudget } from "./restart-budget.ts";

/** What the pool needs to know, whatever its workers live in. */
export interface PoolOptions {
  /** Names the worker in errors. */
  readonly name: string;
  readonly instances: number;
  readonly ahead: 0 | 1;
  readonly onWorkerCrash: "isolate" | "fail";
  readonly recycleAfterBatches: number;
  readonly maxMemoryBytes: number;
  readonly resultRows: "own" | "view";
  readonly closeTimeoutMs: number;
  readonly clock?: Clock | undefined;
  readonly open: OpenLink;
}

/** Something happened to an instance. */
export interface InstanceEvent {
  readonly instance: InstanceInfo;
  /** Why an instance died or was taken out of service, where there is a reason to tell. */
  readonly why?: string | undefined;
}

/** An executor whose batches run in worker threads or processes. */
export interface WorkerExecutor<In, Out> extends Executor<In, Out> {
  /** Every instance that is not dead, and the dead ones of places that will not be filled again. */
  instances(): readonly InstanceInfo[];
  /** Instances that were started again after a crash or a hang, since construction. */
  readonly restarts: number;
  /** Tells each change of state; returns a function that ends it. A listener that throws is reported on the console. */
  onInstance(listener: (event: InstanceEvent) => void): () => void;
}

/** A place for one serving instance, kept filled. */
interface Place {
  instance: Instance;
  /** When the instance took this place. */
  sinceMs: number;
  successor: Instance | undefined;
  cancelRestart: (() => void) | undefined;
  /** The restart limit was passed: it stays empty. */
  lost: boolean;
}

// Batches that wait for an instance. A batcher hands over no more than it has slots; this bounds everyone else.
const maxWaiting = 1024;

// A model that needs more than maxMemoryMb from the start must not be replaced after every batch.
const leastServiceMs = 10_000;

export class Pool<In, Out> implements WorkerExecutor<In, Out> {
  readonly slots: number;
  readonly ahead: 0 | 1;
  restarts = 0;
  readonly #options: PoolOptions;
  readonly #clock: Clock;
  readonly #budget: RestartBudget;
  readonly #places: Place[] = [];
  readonly #alive: Set<Instance> = new Set();
  readonly #waiting: Run[] = [];
  readonly #listeners: Set<(event: InstanceEvent) => void> = new Set();
  readonly #quarantine: Quarantine;
  readonly #started: Promise<void>;
  #startedWith: { resolve(): void; reject(error: Error): void } | undefined;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;
  #whenStill: (() => void) | undefined;
  #nextId = 1;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.slots = options.instances;
    this.ahead = options.ahead;
    this.#clock = options.clock ?? systemClock;
    this.#budget = new RestartBudget(this.#clock);
    this.#quarantine = new Quarantine(options.name, (events) => this.#open("quarantined", events));
    this.#started = new Promise((resolve, reject) => {
      this.#startedWith = { resolve, reject };
    });
    // Whoever does not ask ready() hears of it from the first batch.
    this.#started.catch(() => undefined);
    for (let i = 0; i < options.instances; i++) {
      this.#places.push({
        instance: this.#openServing(),
        sinceMs: this.#clock.now(),
        successor: undefined,
        cancelRestart: undefined,
        lost: false,
      });
    }
  }

  ready(): Promise<void> {
    return this.#failure === undefined ? this.#started : Promise.reject(this.#failure);
  }

  run(items: In[], context: BatchContext): Promise<ArrayLike<Out | Error>> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      if (this.#closing !== undefined) return reject(closed(this.#options.name));
      if (this.#waiting.length >= maxWaiting) {
        return reject(
          new BatcherError(
            "QUEUE_FULL",
            `${this.#options.name}: ${maxWaiting} batches wait for a worker. Put a batcher before it.`,
            { waiting: maxWaiting },
          ),
        );
      }
      const { signal } = context;
      const onAbort = (): void => this.#aborted(run, signal.reason);
      const settle = (): void => signal.removeEventListener("abort", onAbort);
      const run: Run = {
        // The batcher empties the places of callers that have gone; a batch that waits or runs again needs them all.
        items: items.slice(),
        context,
        attempt: context.attempt,
        resolve(results) {
          settle();
          resolve(results as (Out | Error)[]);
        },
        reject(error) {
          settle();
          reject(error);
        },
      };
      signal.addEventListener("abort", onAbort);
      this.#waiting.push(run);
      this.#dispatch();
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  instances(): readonly InstanceInfo[] {
    const lost = this.#places.filter((place) => place.lost).map((place) => place.instance);
    return [...lost, ...this.#alive].map((instance) => instance.info);
  }

  onInstance(listener: (event: InstanceEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Waiting batches go to the instance that has least to do: an idle one first, else one batch ahead. */
  #dispatch(): void {
    while (this.#waiting.length > 0) {
      let best: Instance | undefined;
      for (const { instance } of this.#places) {
        if (!instance.serves || instance.outstanding > this.ahead) continue;
        if (best === undefined || instance.outstanding < best.outstanding) best = instance;
      }
      if (best === undefined) return;
      best.run(this.#waiting.shift() as Run);
    }
  }

  #open(role: InstanceRole, events: InstanceEvents): Instance {
    const instance = new Instance(this.#nextId++, role, this.#options, {
      changed: (changed) => {
        if (this.#listeners.size > 0) this.#tell({ instance: changed.info });
        events.changed(changed);
      },
      ended: (dead, lost, why, error) => {
        this.#alive.delete(dead);
        events.ended(dead, lost, why, error);
        if (this.#alive.size === 0) this.#whenStill?.();
      },
    });
    this.#alive.add(instance);
    return instance;
  }

  #openServing(role: "serving" | "successor" = "serving"): Instance {
    return this.#open(role, {
      changed: (instance) => this.#changed(instance),
      ended: (instance, lost, why, error) => this.#ended(instance, lost, why, error),
    });
  }

  #changed(instance: Instance): void {
    if (instance.state === "ready" && this.#startedWith !== undefined) this.#checkStarted();
    const place = this.#placeOf(instance);
    if (place === undefined) return;
    if (instance === place.successor) {
      if (instance.state === "ready") this.#takeOver(place, instance);
    } else if (this.#wornOut(place)) {
      this.#recycle(place);
    }
    this.#dispatch();
  }

  #checkStarted(): void {
    if (!this.#places.every(({ instance }) => instance.serves) || this.#places.length < this.slots) return;
    this.#startedWith?.resolve();
    this.#startedWith = undefined;
  }

  /** A successor is loaded beside the worn-out instance, one in the whole pool at a time: memory for one copy more. */
  #wornOut({ instance, sinceMs, successor, lost }: Place): boolean {
    const { recycleAfterBatches, maxMemoryBytes } = this.#options;
    if (lost || successor !== undefined || this.#closing !== undefined || !instance.serves) return false;
    const tooBig = instance.memoryBytes > maxMemoryBytes && this.#clock.now() - sinceMs >= leastServiceMs;
    if (instance.batches < recycleAfterBatches && !tooBig) return false;
    return this.#places.every((place) => place.successor === undefined);
  }

  #recycle(place: Place): void {
    const { instance } = place;
    const { recycleAfterBatches } = this.#options;
    const why =
      instance.batches >= recycleAfterBatches
        ? `${instance.batches} batches (recycleAfterBatches)`
        : `${Math.round(instance.memoryBytes / 1024 / 1024)} MB (maxMemoryMb)`;
    this.#tell({ instance: instance.info, why: `is being replaced after ${why}` });
    place.successor = this.#openServing("successor");
  }

  #takeOver(place: Place, successor: Instance): void {
    place.instance.drain();
    place.instance = successor;
    place.sinceMs = this.#clock.now();
    place.successor = undefined;
    successor.role = "serving";
  }

  #ended(instance: Instance, lost: readonly Run[], why: string, error: Error | undefined): void {
    const place = this.#placeOf(instance);
    const drained = place === undefined || instance.draining;
    if (drained && lost.length === 0) {
      this.#tell({ instance: instance.info });
    } else {
      this.#crashed(instance, lost, instance.loadError ?? this.#crashError(instance, why, error));
    }
    this.#restoreHung();
  }

  #crashError(instance: Instance, why: string, cause: Error | undefined): BatcherError {
    const during = instance.loaded ? "" : " before it was ready";
    return new BatcherError(
      "WORKER_CRASHED",
      `${this.#options.name}: a worker ended${during}: ${why}.`,
      { instance: instance.id, why },
      cause,
    );
  }

  #crashed(instance: Instance, lost: readonly Run[], error: Error): void {
    const place = this.#placeOf(instance);
    this.#tell({ instance: instance.info, why: error.message });
    // The first start is all or nothing: a model that can not be loaded will not load on the next try either.
    if (this.#startedWith !== undefined) return this.#fail(error, lost);
    if (place !== undefined) this.#replace(place, instance, error);
    this.#rescue(lost, error);
    this.#dispatch();
  }

  /** What the dead instance held. The first was running: it is the suspect. The others never began. */
  #rescue(lost: readonly Run[], error: Error): void {
    const [suspect, ...innocent] = lost;
    if (suspect === undefined) return;
    const over = this.#failure !== undefined || this.#closing !== undefined;
    if (over || this.#options.onWorkerCrash === "fail") {
      for (const run of lost) run.reject(error);
      return;
    }
    this.#waiting.unshift(...innocent);
    this.#quarantine.isolate(suspect, error);
  }

  #replace(place: Place, dead: Instance, error: Error): void {
    if (dead === place.successor) {
      place.successor = undefined;
      // The old one goes on; its wear is counted anew, so that a failing load is not tried after every batch.
      place.instance.batches = 0;
      place.instance.memoryBytes = 0;
      return;
    }
    if (this.#closing !== undefined) return;
    const delayMs = this.#budget.crashed();
    if (delayMs === undefined) return this.#lose(place, error);
    place.cancelRestart = this.#clock.after(delayMs, () => {
      place.cancelRestart = undefined;
      this.#restart(place);
    });
  }

  #restart(place: Place): void {
    this.restarts++;
    place.instance = this.#openServing();
    place.sinceMs = this.#clock.now();
  }

  #lose(place: Place, error: Error): void {
    place.lost = true;
    if (this.#places.some(({ lost }) => !lost)) return;
    const failure = new BatcherError(
      "WORKER_CRASHED",
      `${this.#options.name}: no worker is left; they crashed too often (${this.#budget.rule}). The last one: ${error.message}`,
      { restarts: this.restarts },
      error,
    );
    this.#fail(failure, []);
  }

  /** The end: nothing runs any more, and every batch says why. */
  #fail(failure: Error, lost: readonly Run[]): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.#startedWith?.reject(failure);
    this.#startedWith = undefined;
    for (const place of this.#places) {
      place.lost = true;
      place.cancelRestart?.();
    }
    for (const run of [...lost, ...this.#waiting.splice(0)]) run.reject(failure);
    for (const instance of this.#alive) if (instance.role !== "quarantined") instance.drain();
  }

  #aborted(run: Run, reason: unknown): void {
    const at = this.#waiting.indexOf(run);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      return run.reject(reason);
    }
    if (this.#quarantine.aborted(run, reason)) return;
    const place = this.#places.find(({ instance }) => instance.holds(run));
    const instance = place?.instance ?? [...this.#alive].find((candidate) => candidate.holds(run));
    if (instance === undefined) return;
    if (isRunTimeout(reason)) this.#hung(instance, run, reason as Error);
    else instance.abort(run);
  }

  /** A process is killed; a thread can not be, so it is taken out of service and its place filled anew. */
  #hung(instance: Instance, run: Run, reason: Error): void {
    const others = instance.takeBack().filter((other) => other !== run);
    this.#waiting.unshift(...others);
    run.reject(reason);
    this.#tell({ instance: instance.info, why: reason.message });
    if (instance.kill()) return;
    const place = this.#placeOf(instance);
    instance.role = "hung";
    instance.drain();
    instance.letGo();
    if (place !== undefined) this.#replaceHung(place, reason);
    this.#dispatch();
  }

  // As many hung threads as there are places are replaced, no more: each holds a core and a copy of the model.
  #replaceHung(place: Place, reason: Error): void {
    const hung = [...this.#alive].filter(({ role }) => role === "hung").length;
    if (hung <= this.slots) this.#replace(place, place.instance, reason);
  }

  /** A hung thread has ended after all: a place that waits for that may be filled. */
  #restoreHung(): void {
    if (this.#closing !== undefined) return;
    const place = this.#places.find(
      ({ instance, lost, cancelRestart }) =>
        instance.state === "dead" && instance.role === "hung" && !lost && cancelRestart === undefined,
    );
    if (place !== undefined) this.#restart(place);
  }

  #placeOf(instance: Instance): Place | undefined {
    return this.#places.find((place) => place.instance === instance || place.successor === instance);
  }

  async #close(): Promise<void> {
    for (const place of this.#places) place.cancelRestart?.();
    await this.#quarantine.close();
    for (const run of this.#waiting.splice(0)) run.reject(closed(this.#options.name));
    const still = new Promise<void>((resolve) => {
      this.#whenStill = resolve;
    });
    for (const instance of this.#alive) instance.drain();
    const cancel = this.#clock.after(this.#options.closeTimeoutMs, () => this.#whenStill?.());
    if ([...this.#alive].some(({ role }) => role !== "hung")) await still;
    cancel();
    // What has not ended by now: a process is killed, a thread must not keep this process alive.
    for (const instance of this.#alive) if (!instance.kill()) instance.letGo();
  }

  #tell(event: InstanceEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        console.error("Sheaf: a listener of instance events failed:", error);
      }
    }
  }
}

const closed = (name: string): BatcherError => new BatcherError("CLOSED", `${name} is closed.`);

const isRunTimeout = (reason: unknown): boolean => reason instanceof BatcherError && reason.code === "RUN_TIMEOUT";
