export type { PostgresClient, ResultRow } from "../shared/postgres/client.ts";
export { insertBatcher, type InsertOptions } from "../shared/postgres/insert.ts";
export type { TableName } from "../shared/postgres/identifier.ts";
export { isRowError } from "../shared/postgres/row-error.ts";
export type { Returning } from "../shared/postgres/statement.ts";
export { upsertBatcher, type UpsertOptions } from "../shared/postgres/upsert.ts";
export type { InputRow } from "../shared/postgres/write.ts";
export { lookupBatcher, type Found, type LookupOptions } from "./lookup.ts";
export { rateShares, rateSharesTableSql, type PostgresRateShares, type RateSharesOptions } from "./rate-shares.ts";
