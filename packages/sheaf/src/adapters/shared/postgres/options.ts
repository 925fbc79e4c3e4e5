import type { BatcherOptions } from "../../../core/contract/options.ts";
import { batcherChecks } from "../../../core/contract/settings.ts";
import { checkNames } from "../../../shared/checks.ts";
import { defined } from "../defined.ts";
import type { Connection } from "./client.ts";
import { isRowError } from "./row-error.ts";

/** Options of the batcher that are left to the user; the rest follows from the table. */
export type DatabaseBatcherOptions<In, Out> = Omit<
  BatcherOptions<In, Out>,
  "groupKey" | "orderKey" | "dedupeKey" | "runOne" | "resultKey" | "onMissing"
>;

export const databaseDefaults = { maxBatchSize: 500 } as const;

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
  const { maxBatchSize = databaseDefaults.maxBatchSize, onBatchError = "bisect" } = options;
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
