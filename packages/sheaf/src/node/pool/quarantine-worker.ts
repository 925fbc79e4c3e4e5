import type { Clock } from "../../core/runtime/runtime.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import type { Instance, Job } from "./instance.ts";
import type { Instances } from "./instances.ts";
import { RestartPauses } from "./restart-pauses.ts";

export type SuspectRun =
  | { readonly results: unknown[] }
  | { readonly error: unknown }
  /** The worker ended during the run. */
  | { readonly crash: Error }
  /** There was no worker to run it in; the items are not to blame. */
  | { readonly notRun: Error };

/** The only instance in which suspects run: started when it is needed, and again after each crash. */
export class QuarantineWorker {
  readonly #name: string;
  readonly #instances: Instances;
  readonly #clock: Clock;
  // Pauses of its own: a crash that a suspect causes here is no reason to stop serving the others.
  readonly #pauses: RestartPauses;
  #instance: Instance | undefined;
  /** Waits for the instance. */
  #next: Job | undefined;
  #settle: ((outcome: SuspectRun) => void) | undefined;
  #cancelRestart: (() => void) | undefined;

  constructor(name: string, instances: Instances, clock: Clock) {
    this.#name = name;
    this.#instances = instances;
    this.#clock = clock;
    this.#pauses = new RestartPauses(clock);
  }

  /** Runs a part of a batch, one at a time; never rejects. */
  run({ items, handle, attempt }: Pick<Job, "items" | "handle" | "attempt">): Promise<SuspectRun> {
    return new Promise((resolve) => {
      this.#settle = (outcome) => {
        this.#settle = undefined;
        this.#next = undefined;
        resolve(outcome);
      };
      this.#next = {
        items,
        handle,
        attempt,
        resolve: (results) => this.#settle?.({ results }),
        reject: (error) => this.#settle?.({ error }),
      };
      this.#begin();
    });
  }

  /** Ends the current run, by killing the worker if need be: a hung one cannot be aborted. */
  giveUp(handle: Job["handle"], reason: Error): void {
    this.#cancelRestart?.();
    const instance = this.#instance;
    this.#instance = undefined;
    if (instance !== undefined) {
      instance.reclaim();
      handle.runsUntil(instance.whenDead);
      if (!instance.kill()) this.#instances.leave(instance);
    }
    this.#settle?.({ notRun: reason });
  }

  /** Releases the instance, until there is something to run again. */
  rest(): void {
    this.#instance?.drain();
    this.#instance = undefined;
  }

  #begin(): void {
    this.#instance ??= this.#start();
    const next = this.#next;
    if (next === undefined || !this.#instance.serves) return;
    this.#next = undefined;
    this.#instance.run(next);
  }

  #start(): Instance {
    // Where the first one is: that there is a device for more is not known.
    return this.#instances.open("quarantined", 0, {
      changed: (instance) => {
        if (instance === this.#instance && instance.serves) this.#begin();
      },
      ended: (instance, _lost, why, error) => {
        if (instance === this.#instance)
          this.#ended(instance, instance.loadError ?? error ?? new Error(`the worker ended: ${why}`));
        else this.#instances.emit({ instance: instance.info });
      },
      left: (instance, error) => this.#ended(instance, error),
    });
  }

  #ended(instance: Instance, error: Error): void {
    this.#instances.emit({ instance: instance.info, why: error.message });
    this.#instance = undefined;
    if (instance.loaded) this.#settle?.({ crash: error });
    else this.#startAgain(error);
  }

  /** It ended before it had anything to run: out of memory or handles, or killed by an operator. */
  #startAgain(error: Error): void {
    if (this.#next === undefined) return;
    const pauseMs = this.#pauses.crashed();
    if (!this.#pauses.isPastLimit) {
      this.#cancelRestart = this.#clock.after(pauseMs, () => this.#begin());
      return;
    }
    const message =
      `${this.#name}: the worker ended during this batch, and none could be started to run it again ` +
      `(it ended ${this.#pauses.rule}): ${error.message}`;
    this.#settle?.({ notRun: new BatcherError("WORKER_CRASHED", message, {}, error) });
  }
}
