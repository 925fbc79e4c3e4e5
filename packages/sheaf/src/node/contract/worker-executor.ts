import type { Executor } from "../../core/contract/executor.ts";
import type { InstanceInfo } from "../pool/instance.ts";

/** Something happened to an instance. */
export interface InstanceEvent {
  readonly instance: InstanceInfo;
  /** Why an instance died or was taken out of service, where there is a reason. */
  readonly why?: string | undefined;
}

/** An executor whose batches run in worker threads or processes. */
export interface WorkerExecutor<In, Out> extends Executor<In, Out> {
  /** Every instance that is not dead, and dead ones that will not be replaced. */
  instances(): readonly InstanceInfo[];
  /** Restarts after a crash or a hang, since construction. */
  readonly restarts: number;
  /**
   * Calls back on each change of state; returns a function that ends it. A listener that throws is reported on the
   * console.
   */
  onInstance(listener: (event: InstanceEvent) => void): () => void;
}
