import type { Executor } from "../../core/contract/executor.ts";

/**
 * The life of an instance. `ready` and `busy` serve; `draining` finishes its batches; `dead` is the end.
 */
export type InstanceState = "starting" | "warming" | "ready" | "busy" | "draining" | "dead";

/** The state of one instance: one loaded copy of the model, in a thread or process of its own. */
export interface InstanceInfo {
  /** 1, 2, 3 … per executor; a replacement has a new one. */
  readonly id: number;
  readonly state: InstanceState;
  /** `"serving"`; `"successor"`: loading, to replace one that is recycled; `"quarantined"`: runs suspects of a crash;
   *  `"hung"`: past its run timeout and not to be stopped safely. */
  readonly role: InstanceRole;
  /** The process id; undefined for a thread. */
  readonly pid: number | undefined;
  /** Batches it answered. */
  readonly batches: number;
  /** Last sample, in bytes: resident memory of a process, JavaScript heap and buffers of a thread. 0 before the first. */
  readonly memoryBytes: number;
}

export type InstanceRole = "serving" | "successor" | "quarantined" | "hung";

export interface InstanceEvent {
  readonly instance: InstanceInfo;
  /** Why an instance died or was taken out of service, where there is a reason. */
  readonly why?: string | undefined;
}

/** No instance can serve, and the next one starts only after a pause that grew with the crashes, or once a hung thread ends. */
export interface WorkerOutage {
  /** Milliseconds until an instance starts; undefined while all are hung threads. */
  readonly restartInMs: number | undefined;
  /** The refusal of calls meanwhile: `WORKER_CRASHED`, with the last crash or the cure. */
  readonly error: Error;
}

export interface WorkerExecutor<In, Out> extends Executor<In, Out> {
  /** Every instance that is not dead, and the dead ones whose place is empty. */
  instances(): readonly InstanceInfo[];
  /** Set while calls are refused because the workers crashed too often or hang; undefined while an instance loads or serves. */
  readonly outage: WorkerOutage | undefined;
  /** Restarts after a crash or a hang, since construction. */
  readonly restarts: number;
  /**
   * Calls back on each change of state; returns a function that ends it. A listener that throws is reported on the
   * console.
   */
  onInstance(listener: (event: InstanceEvent) => void): () => void;
}
