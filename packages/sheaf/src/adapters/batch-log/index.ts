export type { PostgresClient, QueryClient, UnsafeClient } from "../shared/postgres/client.ts";
export type { TableName } from "../shared/postgres/identifier.ts";
export { batchLog, type BatchLog, type BatchLogOptions, type BatchLogStats, type WatchOptions } from "./log.ts";
export { batchLogTableSql, hourlyReportSql, type HourOfService } from "./sql.ts";
