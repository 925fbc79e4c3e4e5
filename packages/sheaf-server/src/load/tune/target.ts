import type { BatchFunction, Executor } from "sheaf";
import type { BatchVerdict } from "../../runners/self-test/batch-verdict.ts";

export interface TuneTarget {
  readonly run: BatchFunction<unknown, unknown> | Executor<unknown, unknown>;
  readonly sample: (index: number) => unknown;
  /** Where it runs; undefined where only its own program knows. */
  readonly device?: string | undefined;
  /** Facts about the model and its device, in sentences. */
  readonly note?: string | undefined;
  /** Batches it can run at once. */
  readonly slots: number;
  /** Whether its results depend on the batch, as far as is known; runs it where it was not tested yet. */
  readonly selfTest: () => Promise<BatchVerdict>;
  readonly close: () => Promise<void>;
}
