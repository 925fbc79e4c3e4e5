import type { BatchFunction, Executor } from "sheaf";

/** What `sheaf tune` measures. */
export interface TuneTarget {
  readonly run: BatchFunction<unknown, unknown> | Executor<unknown, unknown>;
  readonly sample: (index: number) => unknown;
  /** Batches it can run at once. */
  readonly slots: number;
  readonly close: () => Promise<void>;
}
