import { systemClock, type Clock } from "../../core/runtime/runtime.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import { runHandleOf } from "../../core/contract/base-run-handle.ts";
import type { RunHandle } from "../../core/contract/executor.ts";
import { isLoss } from "../../core/dispatch/bisect.ts";
import type { Instance, Job } from "./instance.ts";
import { coreShortage } from "./cores.ts";
import { Instances, type InstancesOptions } from "./instances.ts";
import { Supervisor, type SupervisorOptions } from "./supervisor.ts";
import { Quarantine } from "./quarantine.ts";
import type { InstanceEvent, InstanceInfo, WorkerExecutor, WorkerOutage } from "../contract/worker-executor.ts";

export interface PoolOptions extends InstancesOptions, SupervisorOptions {
  readonly prefetch: 0 | 1;
  readonly closeTimeoutMs: number;
  readonly clock?: Clock | undefined;
}

// Batches that wait for an instance. A batcher hands over no more than it has slots; this is the bound for other
// callers.
const maxWaiting = 1024;
const endsWithinMs = 5000;

/** Hands batches to the instances, and settles each exactly once, whatever happens to the instance that has it. */
export class Pool<In, Out> implements WorkerExecutor<In, Out> {
  readonly slots: number;
  readonly prefetch: 0 | 1;
  readonly reportsStart = true;
  readonly runsApart = true;
  readonly #options: PoolOptions;
  readonly #clock: Clock;
  readonly #waiting: Job[] = [];
  readonly #instances: Instances;
  readonly #supervisor: Supervisor;
  readonly #quarantine: Quarantine;
  readonly #started: Promise<void>;
  #startedWith: { resolve(): void; reject(error: Error): void } | undefined;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.slots = options.instances;
    this.prefetch = options.prefetch;
    this.#started = new Promise((resolve, reject) => {
      this.#startedWith = { resolve, reject };
    });
    // A caller that does not await ready() gets the error with the first batch.
    this.#started.catch(() => undefined);
    const clock = (this.#clock = options.clock ?? systemClock);
    this.#instances = new Instances(options, clock);
    this.#quarantine = new Quarantine(options.name, this.#instances, clock);
    this.#supervisor = new Supervisor(options, this.#instances, clock, {
      changed: () => this.#dispatch(),
      started: () => this.#startedWith?.resolve(),
      crashed: (lost, error) => {
        this.#rescue(lost, error);
        this.#dispatch();
        this.#refuseWaiting();
      },
      over: (failure, lost) => this.#fail(failure, lost),
    });
  }

  get restarts(): number {
    return this.#supervisor.restarts;
  }

  get outage(): WorkerOutage | undefined {
    return this.#closing === undefined ? this.#supervisor.outage : undefined;
  }

  coreShortage(): number {
    return coreShortage();
  }

  ready(): Promise<void> {
    const failure = this.#failure ?? this.outage?.error;
    return failure === undefined ? this.#started : Promise.reject(failure);
  }

  run(items: In[], context: RunHandle): Promise<ArrayLike<Out | Error>> {
    const handle = runHandleOf(context);
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      if (this.#closing !== undefined) return reject(closed(this.#options.name));
      const { outage } = this;
      if (outage !== undefined && !handle.isApart) return reject(outage.error);
      if (this.#waiting.length >= maxWaiting) {
        return reject(
          new BatcherError(
            "QUEUE_FULL",
            `${this.#options.name}: ${maxWaiting} batches wait for a worker. Put a batcher in front of it.`,
            { waiting: maxWaiting },
          ),
        );
      }
      const run: Job = {
        // The batcher drops items whose callers have left; a batch that waits or runs again needs them all.
        items: items.slice(),
        handle,
        attempt: handle.attempt,
        resolve(results) {
          settled();
          resolve(results as (Out | Error)[]);
        },
        reject(error) {
          settled();
          reject(error);
        },
      };
      const settled = handle.onAborted((reason) => this.#aborted(run, reason));
      if (handle.isApart) return this.#quarantine.run(run);
      this.#waiting.push(run);
      this.#dispatch();
    });
  }

  /** The worker's crash was this item's fault and does not count. */
  found(_item: In, error: unknown): void {
    if (isLoss(error) !== undefined) this.#supervisor.pardon();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  instances(): readonly InstanceInfo[] {
    return [...this.#supervisor.dead, ...[...this.#instances.alive].map((instance) => instance.info)];
  }

  onInstance(listener: (event: InstanceEvent) => void): () => void {
    return this.#instances.listen(listener);
  }

  /** Hands waiting batches to the least busy instance: an idle one first, else one batch is prefetched. */
  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const instance = this.#supervisor.idlest(this.prefetch);
      if (instance === undefined) return;
      instance.run(this.#waiting.shift() as Job);
    }
  }

  /** Handles the batches of a dead instance. The first was running and fails; the others never began. */
  #rescue([suspect, ...others]: readonly Job[], error: Error): void {
    const isOver = this.#failure !== undefined || this.#closing !== undefined;
    if (!isOver) this.#waiting.unshift(...others);
    suspect?.reject(error);
    if (isOver) for (const run of others) run.reject(this.#failure ?? error);
  }

  #aborted(run: Job, reason: unknown): void {
    const at = this.#waiting.indexOf(run);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      return run.reject(reason);
    }
    if (this.#quarantine.aborted(run, reason)) return;
    const instance = [...this.#instances.alive].find((candidate) => candidate.holds(run));
    if (instance === undefined) return;
    if (!isRunTimeout(reason)) return instance.abort(run);
    if (instance.isRunning(run)) return this.#hung(instance, run, reason as Error);
    // A count from the hand-over may give up a batch that never began: no reason to end the worker.
    instance.abort(run);
    run.reject(reason);
  }

  /** Ends it; a thread that cannot be ended is taken out of service, and another takes its place. */
  #hung(instance: Instance, run: Job, reason: Error): void {
    this.#waiting.unshift(...instance.reclaim().filter((other) => other !== run));
    run.handle.runsUntil(instance.whenDead);
    run.reject(reason);
    this.#instances.emit({ instance: instance.info, why: reason.message });
    if (!instance.kill()) return this.#leave(instance, reason);
    // A thread may be blocked outside JavaScript, for example in a read that never returns.
    const cancel = this.#clock.after(endsWithinMs, () => this.#leave(instance, reason));
    void instance.whenDead.then(cancel);
  }

  #leave(instance: Instance, reason: Error): void {
    this.#instances.leave(instance);
    this.#supervisor.replaceHung(instance, reason);
    this.#dispatch();
    this.#refuseWaiting();
  }

  /** Refuses waiting batches: nothing runs until the pause is over, so they would only time out. */
  #refuseWaiting(): void {
    if (this.#waiting.length === 0) return;
    const { outage } = this;
    if (outage !== undefined) for (const run of this.#waiting.splice(0)) run.reject(outage.error);
  }

  /** The first start failed: every batch fails with the reason. */
  #fail(failure: Error, lost: readonly Job[]): void {
    this.#failure = failure;
    this.#startedWith?.reject(failure);
    for (const run of [...lost, ...this.#waiting.splice(0)]) run.reject(failure);
    for (const instance of this.#instances.alive) if (instance.role !== "quarantined") instance.drain();
  }

  async #close(): Promise<void> {
    this.#supervisor.stop();
    this.#startedWith?.reject(closed(this.#options.name));
    this.#quarantine.close(closed(this.#options.name));
    for (const run of this.#waiting.splice(0)) run.reject(closed(this.#options.name));
    await this.#instances.close(this.#options.closeTimeoutMs);
  }
}

const closed = (name: string): BatcherError => new BatcherError("CLOSED", `${name} is closed.`);

const isRunTimeout = (reason: unknown): boolean => reason instanceof BatcherError && reason.code === "RUN_TIMEOUT";
