import type { Clock } from "../../core/runtime/clock.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import type { InstanceInfo } from "../contract/worker-executor.ts";
import type { Instance, Job } from "./instance.ts";
import type { Instances } from "./instances.ts";
import { RestartBudget } from "./restart-budget.ts";

export interface SupervisorOptions {
  /** Names the worker in errors. */
  readonly name: string;
  readonly instances: number;
  readonly recycleAfterBatches: number;
  readonly maxMemoryBytes: number;
}

export interface SupervisorEvents {
  /** An instance that serves changed its state, or has room for another batch. */
  changed(): void;
  /** Every place has a ready instance, for the first time. */
  started(): void;
  /** An instance crashed, and its place is being filled again. `lost`: the batches it held, the running one first. */
  crashed(lost: readonly Job[], error: Error): void;
  /** No place will be filled again. */
  over(failure: Error, lost: readonly Job[]): void;
}

/** A place for one serving instance, kept filled. */
interface Place {
  /** Its number, from 0. */
  readonly index: number;
  instance: Instance;
  /** When its instance took this place. */
  sinceMs: number;
  successor: Instance | undefined;
  cancelRestart: (() => void) | undefined;
  /** Its instance has been ready once: the model can be loaded. */
  wasReady: boolean;
  /** Past the restart limit: it stays empty. */
  lost: boolean;
}

// A model that needs more than maxMemoryMb from the start must not be replaced after every batch.
const minServiceMs = 10_000;

/** Keeps `instances` places filled: restarts what crashed or hangs, within a budget, and recycles what is worn out. */
export class Supervisor {
  restarts = 0;
  readonly #options: SupervisorOptions;
  readonly #instances: Instances;
  readonly #clock: Clock;
  readonly #events: SupervisorEvents;
  readonly #budget: RestartBudget;
  readonly #supervisor: Place[] = [];
  #hasStarted = false;
  #isOver = false;

  constructor(options: SupervisorOptions, instances: Instances, clock: Clock, events: SupervisorEvents) {
    this.#options = options;
    this.#instances = instances;
    this.#clock = clock;
    this.#events = events;
    this.#budget = new RestartBudget(clock);
    for (let index = 0; index < options.instances; index++) {
      this.#supervisor.push({
        index,
        instance: this.#open("serving", index),
        sinceMs: clock.now(),
        successor: undefined,
        cancelRestart: undefined,
        wasReady: false,
        lost: false,
      });
    }
  }

  /** The least busy instance of those that hold at most `most` batches. */
  idlest(most: number): Instance | undefined {
    let best: Instance | undefined;
    for (const { instance } of this.#supervisor) {
      if (!instance.serves || instance.outstanding > most) continue;
      if (best === undefined || instance.outstanding < best.outstanding) best = instance;
    }
    return best;
  }

  /** Dead instances of places that will not be filled again. */
  get lost(): readonly InstanceInfo[] {
    return this.#supervisor
      .filter(({ instance, lost }) => lost && instance.state === "dead")
      .map(({ instance }) => instance.info);
  }

  /** A thread past its run timeout was abandoned: at most as many as there are places are replaced. */
  replaceHung(instance: Instance, reason: Error): void {
    const place = this.#placeOf(instance);
    if (place !== undefined && this.#instances.hung <= this.#options.instances) this.#replace(place, instance, reason);
  }

  /** Nothing is started or replaced from now on. */
  stop(): void {
    this.#isOver = true;
    for (const place of this.#supervisor) place.cancelRestart?.();
  }

  #open(role: "serving" | "successor", index: number): Instance {
    return this.#instances.open(role, index, {
      changed: (instance) => this.#changed(instance),
      ended: (instance, lost, why, error) => this.#ended(instance, lost, why, error),
      left: (instance, error) => this.#left(instance, error),
    });
  }

  #changed(instance: Instance): void {
    const place = this.#placeOf(instance);
    if (place === undefined) return;
    if (instance.state === "ready") place.wasReady = true;
    this.#checkStarted();
    if (instance === place.successor) {
      if (instance.state === "ready") this.#takeOver(place, instance);
    } else if (this.#isWornOut(place)) {
      this.#recycle(place);
    }
    this.#events.changed();
  }

  #checkStarted(): void {
    if (this.#hasStarted || !this.#supervisor.every(({ instance, lost }) => lost || instance.serves)) return;
    this.#hasStarted = true;
    this.#events.started();
  }

  /** A successor is loaded beside the worn-out instance, one in the whole pool at a time: memory for one copy more. */
  #isWornOut({ instance, sinceMs, successor, lost }: Place): boolean {
    const { recycleAfterBatches, maxMemoryBytes } = this.#options;
    if (lost || successor !== undefined || this.#isOver || !instance.serves) return false;
    const tooBig = instance.memoryBytes > maxMemoryBytes && this.#clock.now() - sinceMs >= minServiceMs;
    if (instance.batches < recycleAfterBatches && !tooBig) return false;
    return this.#supervisor.every((place) => place.successor === undefined);
  }

  #recycle(place: Place): void {
    const { instance } = place;
    const why =
      instance.batches >= this.#options.recycleAfterBatches
        ? `${instance.batches} batches (recycleAfterBatches)`
        : `${Math.round(instance.memoryBytes / 1024 / 1024)} MB (maxMemoryMb)`;
    this.#instances.emit({ instance: instance.info, why: `is being replaced after ${why}` });
    place.successor = this.#open("successor", place.index);
  }

  #takeOver(place: Place, successor: Instance): void {
    place.instance.drain();
    place.instance = successor;
    place.sinceMs = this.#clock.now();
    place.successor = undefined;
    successor.role = "serving";
  }

  #ended(instance: Instance, lost: readonly Job[], why: string, error: Error | undefined): void {
    const wasExpected = instance.draining || this.#placeOf(instance) === undefined;
    if (wasExpected && lost.length === 0) this.#instances.emit({ instance: instance.info });
    else this.#crashed(instance, lost, instance.loadError ?? this.#crashError(instance, why, error));
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

  #crashed(instance: Instance, lost: readonly Job[], error: Error): void {
    this.#instances.emit({ instance: instance.info, why: error.message });
    const place = this.#placeOf(instance);
    if (this.#isFirstStart(place)) return this.#end(error, lost);
    if (place !== undefined) this.#replace(place, instance, error);
    this.#events.crashed(lost, error);
  }

  /** A thread that hangs in `load` is abandoned. */
  #left(instance: Instance, error: Error): void {
    this.#instances.emit({ instance: instance.info, why: error.message });
    const place = this.#placeOf(instance);
    if (this.#isFirstStart(place)) return this.#end(error, []);
    if (place?.successor === instance) this.#replace(place, instance, error);
    else this.replaceHung(instance, error);
  }

  /** The first start is all or nothing: a model that cannot be loaded will not load on the next try either. */
  #isFirstStart(place: Place | undefined): boolean {
    return !this.#hasStarted && !this.#isOver && place?.wasReady === false;
  }

  #replace(place: Place, dead: Instance, error: Error): void {
    if (dead === place.successor) {
      place.successor = undefined;
      // The old one goes on; its wear is counted from 0 again, so that a failing load is not tried after every batch.
      place.instance.batches = 0;
      place.instance.memoryBytes = 0;
      return;
    }
    if (this.#isOver) return;
    const delayMs = this.#budget.crashed();
    if (delayMs === undefined) return this.#lose(place, error);
    place.cancelRestart = this.#clock.after(delayMs, () => {
      place.cancelRestart = undefined;
      this.#restart(place);
    });
  }

  #restart(place: Place): void {
    this.restarts++;
    place.instance = this.#open("serving", place.index);
    place.sinceMs = this.#clock.now();
  }

  /** A hung thread has ended after all: a place that waited for that may be filled. */
  #restoreHung(): void {
    if (this.#isOver) return;
    const place = this.#supervisor.find(
      ({ instance, lost, cancelRestart }) =>
        instance.state === "dead" && instance.role === "hung" && !lost && cancelRestart === undefined,
    );
    if (place !== undefined) this.#restart(place);
  }

  #lose(place: Place, error: Error): void {
    place.lost = true;
    this.#instances.emit({ instance: place.instance.info });
    if (this.#supervisor.some(({ lost }) => !lost)) return this.#checkStarted();
    const failure = new BatcherError(
      "WORKER_CRASHED",
      `${this.#options.name}: no worker is left; they crashed too often (${this.#budget.rule}). The last one: ${error.message}`,
      { restarts: this.restarts },
      error,
    );
    this.#end(failure, []);
  }

  #end(failure: Error, lost: readonly Job[]): void {
    if (this.#isOver) return;
    this.stop();
    for (const place of this.#supervisor) place.lost = true;
    this.#events.over(failure, lost);
  }

  #placeOf(instance: Instance): Place | undefined {
    return this.#supervisor.find((place) => place.instance === instance || place.successor === instance);
  }
}
