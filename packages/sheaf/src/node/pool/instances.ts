import type { Clock } from "../../core/runtime/runtime.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import { Instance, type InstanceEvents } from "./instance.ts";
import type { OpenConnection } from "./connection.ts";
import type { InstanceEvent, InstanceRole } from "../contract/worker-executor.ts";

export interface InstancesOptions {
  readonly name: string;
  readonly resultRows: "own" | "view";
  readonly loadTimeoutMs: number;
  readonly open: OpenConnection;
}

/** Every instance of a pool, whatever its role: starts them, bounds their loading, and notifies listeners. */
export class Instances {
  readonly #options: InstancesOptions;
  readonly #clock: Clock;
  readonly #alive: Set<Instance> = new Set();
  readonly #listeners: Set<(event: InstanceEvent) => void> = new Set();
  #whenStill: (() => void) | undefined;
  #nextId = 1;

  constructor(options: InstancesOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  get alive(): ReadonlySet<Instance> {
    return this.#alive;
  }

  /** Abandoned threads that have not ended: each still holds a core and a copy of the model. */
  get hung(): number {
    return [...this.#alive].filter(({ role }) => role === "hung").length;
  }

  /** Starts one. It is ready within `loadTimeoutMs`, or it ends with an error that says so. `index`: as in `OpenConnection`. */
  open(role: InstanceRole, index: number, events: InstanceEvents): Instance {
    const instance = new Instance(this.#nextId++, index, role, this.#options, {
      changed: (changed) => {
        // An instance that is closing is not waited for, and a timer would keep the program alive for it.
        if (changed.loaded || changed.draining) cancelLoad();
        if (this.#listeners.size > 0) this.emit({ instance: changed.info });
        events.changed(changed);
      },
      ended: (dead, lost, why, error) => {
        cancelLoad();
        this.#alive.delete(dead);
        events.ended(dead, lost, why, error);
        if (this.#alive.size === this.hung) this.#whenStill?.();
      },
      left: events.left,
    });
    const { loadTimeoutMs } = this.#options;
    const cancelLoad =
      loadTimeoutMs === Infinity
        ? () => undefined
        : this.#clock.after(loadTimeoutMs, () => this.#giveUpLoad(instance, events));
    this.#alive.add(instance);
    return instance;
  }

  /**
   * Takes a thread that cannot be stopped out of service: it ends by itself once its run has ended, and until then
   * nothing waits for it.
   */
  leave(instance: Instance): void {
    instance.role = "hung";
    instance.drain();
    instance.unref();
  }

  listen(listener: (event: InstanceEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(event: InstanceEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        console.error("Sheaf: a listener of instance events failed:", error);
      }
    }
  }

  /**
   * Lets all of them finish and end. After `timeoutMs` the rest is killed; a thread must not keep this process alive.
   */
  async close(timeoutMs: number): Promise<void> {
    const still = new Promise<void>((resolve) => {
      this.#whenStill = resolve;
    });
    for (const instance of this.#alive) instance.drain();
    const cancel = this.#clock.after(timeoutMs, () => this.#whenStill?.());
    if (this.hung < this.#alive.size) await still;
    cancel();
    for (const instance of this.#alive) if (!instance.kill()) instance.unref();
  }

  #giveUpLoad(instance: Instance, events: InstanceEvents): void {
    const { name, loadTimeoutMs } = this.#options;
    const error = new BatcherError(
      "WORKER_CRASHED",
      `${name}: a worker was not ready after ${loadTimeoutMs} ms (loadTimeoutMs) and was abandoned. ` +
        "Check why its load or warmUp does not return, or raise loadTimeoutMs.",
      { instance: instance.id, loadTimeoutMs },
    );
    instance.loadError = error;
    // For a process, the end follows with this error.
    if (instance.kill()) return;
    this.leave(instance);
    events.left(instance, error);
  }
}
