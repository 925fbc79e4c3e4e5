import type { Clock } from "../../core/runtime/runtime.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import type { Instance, Job } from "./instance.ts";
import type { Instances } from "./instances.ts";
import { RestartPauses } from "./restart-pauses.ts";
import { crashError } from "./supervisor.ts";

/** Most threads abandoned in a run that never ends: each holds a core and a copy of the model. */
const mostLeft = 4;

/** How long an idle instance is kept; the next part of a search usually follows at once. */
const restsAfterMs = 10_000;

/**
 * The single instance for items that may crash their worker or hang: apart from the others, one part of a batch at a time. Started
 * when needed, and again after each crash.
 */
export class Quarantine {
  readonly #name: string;
  readonly #instances: Instances;
  readonly #clock: Clock;
  // Its own pauses, so that a crash here does not stop the others from serving.
  readonly #pauses: RestartPauses;
  #instance: Instance | undefined;
  readonly #waiting: Job[] = [];
  #running: Job | undefined;
  #cancelRestart: (() => void) | undefined;
  #cancelRest: (() => void) | undefined;
  #left = 0;
  #isClosed = false;

  constructor(name: string, instances: Instances, clock: Clock) {
    this.#name = name;
    this.#instances = instances;
    this.#clock = clock;
    this.#pauses = new RestartPauses(clock);
  }

  /** Takes over a job: settles it, whatever happens. */
  run(job: Job): void {
    this.#waiting.push(job);
    this.#begin();
  }

  /** Whether the job is here. If so it ends with `reason`, and its worker is killed, since a hung one cannot be aborted. */
  aborted(job: Job, reason: unknown): boolean {
    const at = this.#waiting.indexOf(job);
    if (at >= 0) this.#waiting.splice(at, 1);
    else if (job !== this.#running) return false;
    else this.#giveUp(job);
    job.reject(reason);
    this.#begin();
    return true;
  }

  close(error: Error): void {
    this.#isClosed = true;
    this.#cancelRestart?.();
    this.#cancelRest?.();
    if (this.#running !== undefined) this.aborted(this.#running, error);
    for (const job of this.#waiting.splice(0)) job.reject(error);
    this.#instance?.drain();
  }

  #giveUp(job: Job): void {
    const instance = this.#instance!;
    this.#running = undefined;
    this.#instance = undefined;
    instance.reclaim();
    job.handle.runsUntil(instance.whenDead);
    if (instance.kill()) return;
    this.#left++;
    void instance.whenDead.then(() => this.#left--);
    this.#instances.leave(instance);
  }

  #begin(): void {
    this.#cancelRest?.();
    this.#cancelRest = undefined;
    if (this.#isClosed || this.#running !== undefined) return;
    if (this.#waiting.length === 0) {
      if (this.#instance !== undefined) this.#cancelRest = this.#clock.after(restsAfterMs, () => this.#rest());
      return;
    }
    if (this.#instance === undefined && this.#left >= mostLeft) {
      this.#refuse(`${this.#left} threads are inside runs that never end`);
      return;
    }
    this.#instance ??= this.#start();
    if (!this.#instance.serves) return;
    const job = (this.#running = this.#waiting.shift()!);
    this.#instance.run({
      ...job,
      resolve: (results) => this.#ended(job, () => job.resolve(results)),
      reject: (error) => this.#ended(job, () => job.reject(error)),
    });
  }

  #ended(job: Job, settle: () => void): void {
    if (this.#running !== job) return;
    this.#running = undefined;
    settle();
    this.#begin();
  }

  #rest(): void {
    this.#instance?.drain();
    this.#instance = undefined;
  }

  #start(): Instance {
    // On the first instance's device, since there may not be another.
    return this.#instances.open("quarantined", 0, {
      changed: (instance) => {
        if (instance === this.#instance && instance.serves) this.#begin();
      },
      ended: (instance, _lost, why, error) => {
        if (instance === this.#instance)
          this.#died(instance, instance.loadError ?? crashError(this.#name, instance, why, error));
        else this.#instances.emit({ instance: instance.info });
      },
      left: (instance, error) => this.#died(instance, error),
    });
  }

  #died(instance: Instance, error: Error): void {
    this.#instances.emit({ instance: instance.info, why: error.message });
    this.#instance = undefined;
    const job = this.#running;
    if (job !== undefined) this.#ended(job, () => job.reject(error));
    else if (!instance.loaded) this.#startAgain(error);
  }

  /** It ended before it had anything to run: out of memory or handles, or killed by an operator. */
  #startAgain(error: Error): void {
    if (this.#waiting.length === 0) return;
    const pauseMs = this.#pauses.crashed();
    if (!this.#pauses.isPastLimit) {
      this.#cancelRestart = this.#clock.after(pauseMs, () => this.#begin());
      return;
    }
    this.#refuse(`it ended ${this.#pauses.rule}`, error);
  }

  #refuse(reason: string, cause?: Error): void {
    const message =
      `${this.#name}: the worker ended or hung during this batch, and none could be started to run it again ` +
      `(${reason})${cause === undefined ? "" : `: ${cause.message}`}`;
    for (const job of this.#waiting.splice(0))
      job.reject(new BatcherError("WORKER_CRASHED", message, { isOfItem: false }, cause));
  }
}
