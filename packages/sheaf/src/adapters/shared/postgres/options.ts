import type { BatcherOptions } from "../../../core/contract/options.ts";
import { batcherChecks } from "../../../core/contract/settings.ts";
import { checkNames } from "../../../shared/checks.ts";
import { defined } from "../../../shared/defined.ts";
import type { Connection } from "./client.ts";
import { isRowError } from "./row-error.ts";

/** Options of the batcher that are left to the user; the rest follows from the table. */
export interface DatabaseBatcherOptions<In, Out> extends Omit<
  BatcherOptions<In, Out>,
  | "maxBatchSize"
  | "concurrency"
  | "onBatchError"
  | "shouldBisect"
  | "maxBisectRuns"
  | "name"
  | "groupKey"
  | "orderKey"
  | "dedupeKey"
  | "runOne"
  | "resultKey"
  | "onMissing"
> {
  /**
   * Most rows in a statement; integer >= 1 or Infinity.
   * @default 500
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Most statements in flight; integer >= 1.
   * @default 4 for a pool, or its `max` if that is less; 1 for a single connection
   */
  readonly concurrency?: number | undefined;
  /**
   * After a failed statement, `"bisect"` runs halves of it to isolate the bad rows; `"fail"` makes a batch atomic.
   * @default "bisect"
   * @see shouldBisect
   * @see maxBisectRuns
   */
  readonly onBatchError?: "fail" | "bisect" | undefined;
  /**
   * Whether an error can be the fault of single rows.
   * @default isRowError
   * @see onBatchError
   */
  readonly shouldBisect?: ((error: unknown) => boolean) | undefined;
  /**
   * Most extra runs of one bisection; integer >= 0.
   * @default 2 × `maxBatchSize`
   * @see onBatchError
   */
  readonly maxBisectRuns?: number | undefined;
  /**
   * Label in errors, statistics and metrics.
   * @default made of the table's name, as `insert into users`
   */
  readonly name?: string | undefined;
}

export const databaseDefaults = { maxBatchSize: 500, onBatchError: "bisect" } as const;

/**
 * Checks the names of all options, those of the table included: a misspelt `table` is reported under its own name. `own`: the
 * adapter's options beside those of a batcher.
 * @throws {TypeError} for an unknown name, with the one that was probably meant.
 */
export function checkOptionNames(options: object, own: readonly string[]): void {
  checkNames(options, { ...batcherChecks, ...Object.fromEntries(own.map((option) => [option, true])) });
}

/**
 * Bisects on errors of rows: such a statement wrote nothing, so sending parts of it again is safe. Up to 2n runs find
 * every bad row among n, however many there are.
 */
export function batcherOptionsOf<In, Out>(
  connection: Connection,
  name: string,
  options: DatabaseBatcherOptions<In, Out>,
): DatabaseBatcherOptions<In, Out> {
  const { maxBatchSize = databaseDefaults.maxBatchSize, onBatchError = databaseDefaults.onBatchError } = options;
  const bisecting =
    onBatchError === "bisect"
      ? { shouldBisect: isRowError, maxBisectRuns: Math.min(2 * maxBatchSize, Number.MAX_SAFE_INTEGER) }
      : {};
  return {
    concurrency: connection.concurrency,
    name,
    ...bisecting,
    ...defined(options),
    maxBatchSize,
    onBatchError,
  };
}
