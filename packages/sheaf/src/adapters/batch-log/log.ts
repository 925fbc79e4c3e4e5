import {
  checkCount,
  checkOptions,
  closeChecks,
  numberThat,
  withOptions,
  type Check,
  type Closing,
} from "../../shared/checks.ts";
import { randomUUID } from "node:crypto";
import type { Batcher } from "../../core/contract/batcher.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import { warn } from "../../core/runtime/warnings.ts";
import type { BatchRecord } from "../../policies/policy.ts";
import { fixedWindow } from "../../policies/fixed-window.ts";
import { connectionOf, type PostgresClient } from "../shared/postgres/client.ts";
import type { TableName } from "../shared/postgres/identifier.ts";
import { upsertBatcher } from "../shared/postgres/upsert.ts";
import type { InputRow } from "../shared/postgres/write.ts";
import { DatabaseAway, patientClient } from "./patient-client.ts";
import { batchLogTableSql, defaultTable, hourlyReportSql, type HourOfService } from "./sql.ts";

export interface BatchLogOptions extends Pick<TableName, "schema"> {
  /**
   * The log's table.
   * @default "batch_metrics"
   */
  readonly table?: string | undefined;
  /**
   * Records kept while the database is slow or away; beyond them new ones are dropped and counted.
   * @default 10000
   */
  readonly maxBufferedRecords?: number | undefined;
  /**
   * How long a record waits for others to share its statement, in milliseconds.
   * @default 1000
   */
  readonly flushIntervalMs?: number | undefined;
}

export interface WatchOptions {
  /**
   * The name of the service in the log.
   * @default the batcher's name
   */
  readonly service?: string | undefined;
  /**
   * The batcher's own `maxBatchSize`, for the report's fill rate.
   * @default none: the report has no fill rate
   */
  readonly maxBatchSize?: number | undefined;
}

export interface BatchLogStats {
  readonly buffered: number;
  readonly written: number;
  /** Records lost because the buffer was full, or because the log was closed before they could be written. */
  readonly dropped: number;
  /** Records that the database refused because of their values. */
  readonly refused: number;
  /** Of the last statement that failed; undefined since one succeeded. */
  readonly lastError: unknown;
}

export interface BatchLog {
  /** Logs every batch from now on; returns a function that ends it. Costs the batcher nothing but the record itself. */
  watch(batcher: Pick<Batcher<never, unknown>, "name" | "subscribe">, options?: WatchOptions): () => void;
  /** Runs `batchLogTableSql`. Where several processes start at once, run that in a migration instead. */
  createTable(): Promise<void>;
  /** Runs `hourlyReportSql`. */
  hourlyReport(options?: {
    /**
     * Hours that the report goes back; integer >= 1.
     * @default 24
     */
    readonly hours?: number | undefined;
  }): Promise<readonly HourOfService[]>;
  /** Writes the waiting records; while the database is away it resolves after the next try. */
  flush(): Promise<void>;
  /** Ends every watch, writes the waiting records, and gives up after `graceMs`. The client stays open. */
  close(options?: {
    /**
     * Time to write the waiting records, in milliseconds.
     * @default 5000
     */
    readonly graceMs?: number | undefined;
  }): Promise<BatchLogStats>;
  stats(): BatchLogStats;
}

const logChecks: Record<keyof BatchLogOptions, Check> = {
  table: () => undefined,
  schema: () => undefined,
  maxBufferedRecords: checkCount,
  flushIntervalMs: numberThat(">= 0", (value) => value >= 0 && value < Infinity),
};

/**
 * One row for each batch of the watched batchers, written in batches of its own. It never blocks or fails a batcher: while
 * the database is away records wait in a bounded buffer and are tried again, after 1 s, then 2, 4 … 30 s. A statement
 * whose fate is unknown is sent again, and stored once by its key.
 * @throws {TypeError | RangeError} for a wrong client or option; the message quotes it.
 */
export function batchLog(client: PostgresClient, options: BatchLogOptions = {}): BatchLog {
  checkOptions(options, logChecks);
  const { table = defaultTable, schema, maxBufferedRecords = 10_000, flushIntervalMs = 1000 } = options;
  const connection = connectionOf(client);
  const tally = { buffered: 0, written: 0, dropped: 0, refused: 0, lastError: undefined as unknown };
  const patient = patientClient(connection, {
    failed: (error, retryAfterMs) => {
      if (tally.lastError === undefined) {
        const again = `it keeps up to ${maxBufferedRecords} records and tries on every ${retryAfterMs} ms and longer`;
        warn(`batch log: cannot write; ${again}: ${inWords(error)}`);
      }
      tally.lastError = error;
    },
    succeeded: () => (tally.lastError = undefined),
  });
  const write = upsertBatcher(patient, {
    table,
    schema,
    key: ["run_id", "batch_id"],
    update: [],
    returning: [],
    name: `batch log ${table}`,
    maxQueueSize: maxBufferedRecords,
    policy: fixedWindow(),
    maxWaitMs: flushIntervalMs,
  });
  const watches = new Set<() => void>();

  const store = (row: InputRow): void => {
    write(row).then(
      () => {
        tally.buffered--;
        tally.written++;
      },
      (error: unknown) => {
        if (error instanceof DatabaseAway) return store(row);
        tally.buffered--;
        if (error instanceof BatcherError) tally.dropped++;
        else {
          tally.refused++;
          tally.lastError = error;
        }
      },
    );
  };

  const log: BatchLog = {
    watch(batcher, { service = batcher.name, maxBatchSize } = {}) {
      const runId = randomUUID();
      const end = batcher.subscribe((record) => {
        if (tally.buffered >= maxBufferedRecords) {
          tally.dropped++;
          return;
        }
        tally.buffered++;
        store(rowOf(record, runId, service, maxBatchSize));
      });
      watches.add(end);
      return () => {
        watches.delete(end);
        end();
      };
    },
    async createTable() {
      for (const text of batchLogTableSql({ table, schema })) await connection.run(text, []);
    },
    async hourlyReport({ hours = 24 } = {}) {
      checkCount("hours", hours);
      const rows = await connection.run(hourlyReportSql({ table, schema }), [String(hours)]);
      return rows as unknown as readonly HourOfService[];
    },
    async flush() {
      await write.flush();
      await settled();
    },
    close: withOptions(closeChecks, async ({ graceMs = 5000 }: Closing) => {
      for (const end of watches) end();
      watches.clear();
      await write.close({ graceMs });
      await settled();
      return { ...tally };
    }),
    stats: () => ({ ...tally }),
  };
  return log;
}

/** Not the error itself: PGlite's holds the whole statement and every row of it. */
function inWords(error: unknown): string {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const words = typeof message === "string" ? message : String(error);
  return (typeof code === "string" ? `${code} ${words}` : words).slice(0, 300);
}

/** After the microtasks in which the batcher settles the calls of its records. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function rowOf(record: BatchRecord, runId: string, service: string, maxBatchSize: number | undefined): InputRow {
  return {
    created_at: new Date(),
    service,
    batch_size: record.size,
    max_batch_size: Number.isFinite(maxBatchSize) ? maxBatchSize : null,
    wait_time_ms: record.queueWaitMs.mean,
    max_wait_time_ms: record.queueWaitMs.max,
    processing_time_ms: record.runMs,
    weight: record.weight,
    reason: record.reason,
    outcome: record.outcome,
    failed_items: record.failedItems,
    extra_runs: record.extraRuns,
    error_code: record.errorCode ?? null,
    run_id: runId,
    batch_id: record.batchId,
  };
}
