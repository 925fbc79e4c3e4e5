import type { Clock } from "../../core/runtime/runtime.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import type { InstanceInfo, WorkerOutage } from "../contract/worker-executor.ts";
import type { Instance, Job } from "./instance.ts";
import type { Instances } from "./instances.ts";
import { RestartPauses } from "./restart-pauses.ts";

export interface SupervisorOptions {
  readonly name: string;
  readonly instances: number;
  readonly recycleAfterBatches: number;
  readonly maxMemoryMb: number;
}

export interface SupervisorEvents {
  /** An instance that serves changed its state, or has room for another batch. */
  changed(): void;
  /** Every place has a ready instance, for the first time. */
  started(): void;
  /** An instance crashed, and its place will be filled again. `lost`: the batches it held, the running one first. */
  crashed(lost: readonly Job[], error: Error): void;
  /** The first start failed: no place will be filled again. */
  over(failure: Error, lost: readonly Job[]): void;
}

/** A place for one serving instance, kept filled. */
interface Place {
  readonly index: number;
  instance: Instance;
  servesFromAtMs: number;
  successor: Instance | undefined;
  /** Set while it is empty, until its next instance starts. */
  pause: { readonly endsAtMs: number; readonly error: Error; cancel(): void } | undefined;
  /** Its instance has been ready once: the model can be loaded. */
  wasReady: boolean;
}

// A model that needs more than maxMemoryMb from the start must not be replaced after every batch.
const minServiceMs = 10_000;

/** Keeps `instances` places filled: restarts crashed and hanging instances, with growing pauses, and recycles worn-out ones. */
export class Supervisor {
  restarts = 0;
  readonly #options: SupervisorOptions;
  readonly #instances: Instances;
  readonly #clock: Clock;
  readonly #events: SupervisorEvents;
  readonly #pauses: RestartPauses;
  readonly #places: Place[] = [];
  /** Threads that were left in a run that never ends. */
  readonly #hung: Set<Instance> = new Set();
  #hasStarted = false;
  #isOver = false;
  #failed = false;

  constructor(options: SupervisorOptions, instances: Instances, clock: Clock, events: SupervisorEvents) {
    this.#options = options;
    this.#instances = instances;
    this.#clock = clock;
    this.#events = events;
    this.#pauses = new RestartPauses(clock);
    for (let index = 0; index < options.instances; index++) {
      this.#places.push({
        index,
        instance: this.#open("serving", index),
        servesFromAtMs: clock.now(),
        successor: undefined,
        pause: undefined,
        wasReady: false,
      });
    }
  }

  /** The least busy instance of those that hold at most `most` batches. */
  idlest(most: number): Instance | undefined {
    let best: Instance | undefined;
    for (const { instance } of this.#places) {
      if (!instance.serves || instance.outstanding > most) continue;
      const more = best === undefined ? -1 : instance.outstanding - best.outstanding;
      // Of two busy ones, the one that will probably be free first.
      if (more < 0 || (more === 0 && instance.outstanding > 0 && instance.startedAs < best!.startedAs)) best = instance;
    }
    return best;
  }

  /** The last instances of places that are empty, for now or for good. */
  get dead(): readonly InstanceInfo[] {
    const empty = this.#places.filter(({ instance, pause }) => instance.state === "dead" && (this.#failed || pause));
    return empty.map(({ instance }) => instance.info);
  }

  /**
   * Set while no place has an instance that can serve, and the next one only starts after a pause that grew with its crashes, or once a
   * hung thread ends.
   */
  get outage(): WorkerOutage | undefined {
    let next: Place["pause"];
    for (const { pause, instance } of this.#places) {
      if (pause === undefined && !(this.#hung.has(instance) && instance.role === "hung")) return undefined;
      if (next === undefined || (pause !== undefined && pause.endsAtMs < next.endsAtMs)) next = pause;
    }
    if (next === undefined) return { restartInMs: undefined, error: this.#hungError() };
    if (!this.#pauses.isPastLimit) return undefined;
    const { endsAtMs, error } = next;
    const restartInMs = Math.max(0, Math.ceil(endsAtMs - this.#clock.now()));
    const message =
      `${this.#options.name}: no worker is left; they crashed ${this.#pauses.rule}. ` +
      `The next one starts in ${Math.ceil(restartInMs / 1000)} s.`;
    const { restarts } = this;
    return { restartInMs, error: new BatcherError("WORKER_CRASHED", message, { restarts, restartInMs }, error) };
  }

  #hungError(): BatcherError {
    const { size: hungRuns } = this.#hung;
    const message =
      `${this.#options.name}: every worker is a thread inside a run that never ends, and has native code loaded, so that it cannot be stopped. ` +
      "Restart the program. Workers that are processes are ended instead.";
    return new BatcherError("WORKER_CRASHED", message, { hungRuns });
  }

  /** A thread past its run timeout was abandoned: at most as many as there are places are replaced. */
  replaceHung(instance: Instance, reason: Error): void {
    const place = this.#placeOf(instance);
    this.#hung.add(instance);
    if (place !== undefined && this.#hung.size <= this.#options.instances) this.#replace(place, instance, reason);
  }

  /** A crash whose item was found: it does not count. */
  pardon(): void {
    this.#pauses.pardon();
  }

  /** Nothing is started or replaced from now on. */
  stop(): void {
    this.#isOver = true;
    for (const place of this.#places) {
      place.pause?.cancel();
      place.pause = undefined;
    }
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
    const isSettled = ({ instance, pause }: Place): boolean =>
      instance.serves || (pause !== undefined && this.#pauses.isPastLimit);
    if (this.#hasStarted || !this.#places.every(isSettled)) return;
    this.#hasStarted = true;
    this.#events.started();
  }

  /** A successor is loaded beside the worn-out instance, one in the whole pool at a time: memory for one copy more. */
  #isWornOut({ instance, servesFromAtMs, successor }: Place): boolean {
    const { recycleAfterBatches, maxMemoryMb } = this.#options;
    if (successor !== undefined || this.#isOver || !instance.serves) return false;
    const tooBig = instance.memoryBytes > maxMemoryMb * 2 ** 20 && this.#clock.now() - servesFromAtMs >= minServiceMs;
    if (instance.batches < recycleAfterBatches && !tooBig) return false;
    return this.#places.every((place) => place.successor === undefined);
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
    place.servesFromAtMs = this.#clock.now();
    place.successor = undefined;
    successor.role = "serving";
  }

  #ended(instance: Instance, lost: readonly Job[], why: string, error: Error | undefined): void {
    this.#hung.delete(instance);
    const wasExpected = instance.draining || this.#placeOf(instance) === undefined;
    if (wasExpected && lost.length === 0) this.#instances.emit({ instance: instance.info });
    else this.#crashed(instance, lost, instance.loadError ?? crashError(this.#options.name, instance, why, error));
    this.#restoreHung();
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
    const pauseMs = this.#pauses.crashed();
    const cancel = this.#clock.after(pauseMs, () => this.#restart(place));
    place.pause = { endsAtMs: this.#clock.now() + pauseMs, error, cancel };
    if (this.#hasStarted) return;
    const { outage } = this;
    if (outage === undefined) this.#checkStarted();
    else this.#end(outage.error, []);
  }

  #restart(place: Place): void {
    this.restarts++;
    place.pause = undefined;
    place.instance = this.#open("serving", place.index);
    place.servesFromAtMs = this.#clock.now();
  }

  /** A hung thread has ended after all: a place that waited for one may be filled. */
  #restoreHung(): void {
    if (this.#isOver) return;
    const place = this.#places.find(
      ({ instance, pause }) =>
        instance.role === "hung" &&
        pause === undefined &&
        (instance.state === "dead" || this.#hung.size <= this.#options.instances),
    );
    if (place !== undefined) this.#restart(place);
  }

  #end(failure: Error, lost: readonly Job[]): void {
    if (this.#isOver) return;
    this.#failed = true;
    this.stop();
    this.#events.over(failure, lost);
  }

  #placeOf(instance: Instance): Place | undefined {
    return this.#places.find((place) => place.instance === instance || place.successor === instance);
  }
}

/** The error of a run whose worker ended. `why` completes a sentence: "exit code 1". */
export function crashError(
  name: string,
  { id, loaded }: Instance,
  why: string,
  cause: Error | undefined,
): BatcherError {
  const during = loaded ? "" : " before it was ready";
  return new BatcherError("WORKER_CRASHED", `${name}: a worker ended${during}: ${why}.`, { instance: id, why }, cause);
}
