export { batchLog, type BatchLog, type BatchLogOptions } from "./log.ts";
export { batchLogTableSql, hourlyReportSql, type HourOfService } from "./sql.ts";
