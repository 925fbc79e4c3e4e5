import { qualified, quoted, type TableName } from "../shared/postgres/identifier.ts";

export const defaultTable = "batch_metrics";

/**
 * The table and its index, for a migration; both only where they are not there. One row is one batch; `run_id` is drawn
 * once for each watched batcher, so that a row which is sent twice is stored once.
 */
export function batchLogTableSql(name: Partial<TableName> = {}): string[] {
  const table = qualified({ table: defaultTable, ...name });
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  created_at timestamptz NOT NULL DEFAULT now(),
  service text NOT NULL,
  batch_size integer NOT NULL,
  max_batch_size integer,
  wait_time_ms double precision NOT NULL,
  max_wait_time_ms double precision,
  processing_time_ms double precision NOT NULL,
  weight double precision,
  reason text,
  outcome text NOT NULL DEFAULT 'ok',
  failed_items integer NOT NULL DEFAULT 0,
  extra_runs integer NOT NULL DEFAULT 0,
  error_code text,
  run_id uuid NOT NULL DEFAULT gen_random_uuid(),
  batch_id bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, batch_id)
)`,
    `CREATE INDEX IF NOT EXISTS ${quoted(`${name.table ?? defaultTable}_created_at`)} ON ${table} (created_at)`,
  ];
}

/** One row of the hourly report. Times in milliseconds; waits are means per item, the 95th percentile is per batch. */
export interface HourOfService {
  readonly hour: Date;
  readonly service: string;
  readonly batches: number;
  readonly items: number;
  readonly mean_batch_size: number;
  /** Items ÷ room, of the batches whose maximum is known; null where none is. */
  readonly fill_rate: number | null;
  readonly mean_wait_ms: number;
  readonly p95_wait_ms: number;
  readonly mean_processing_ms: number;
  readonly p95_processing_ms: number;
  readonly processing_ms_per_item: number;
  /** Batches of which no item has a result. */
  readonly failed_batches: number;
  readonly failed_items: number;
  /** Runs of parts of batches that had failed as a whole. */
  readonly extra_runs: number;
}

/** Figures of each service in each hour, the last hour first; its one parameter is the number of hours to look back. */
export function hourlyReportSql(name: Partial<TableName> = {}): string {
  return `SELECT date_trunc('hour', created_at) AS hour,
  service,
  count(*)::int4 AS batches,
  sum(batch_size)::float8 AS items,
  avg(batch_size)::float8 AS mean_batch_size,
  sum(batch_size) FILTER (WHERE max_batch_size IS NOT NULL)::float8 / nullif(sum(max_batch_size), 0) AS fill_rate,
  sum(wait_time_ms * batch_size) / nullif(sum(batch_size), 0) AS mean_wait_ms,
  percentile_cont(0.95) WITHIN GROUP (ORDER BY wait_time_ms) AS p95_wait_ms,
  avg(processing_time_ms) AS mean_processing_ms,
  percentile_cont(0.95) WITHIN GROUP (ORDER BY processing_time_ms) AS p95_processing_ms,
  sum(processing_time_ms) / nullif(sum(batch_size), 0) AS processing_ms_per_item,
  (count(*) FILTER (WHERE outcome = 'error'))::int4 AS failed_batches,
  sum(failed_items)::float8 AS failed_items,
  sum(extra_runs)::float8 AS extra_runs
FROM ${qualified({ table: defaultTable, ...name })}
WHERE created_at >= now() - make_interval(hours => $1::text::int4)
GROUP BY 1, 2
ORDER BY 1 DESC, 2`;
}
