import type { RateShares } from "../../limits/process-share.ts";
import { checkOptions, checkText, type Check } from "../../shared/checks.ts";
import { connectionOf, type PostgresClient } from "../shared/postgres/client.ts";
import { qualified, type TableName } from "../shared/postgres/identifier.ts";

export interface RateSharesOptions extends Pick<TableName, "schema"> {
  /** A name for the limit, the same in every process: one for each key and model. Required. */
  readonly limit: string;
  /**
   * The table of the shares, for any number of limits.
   * @default "rate_shares"
   */
  readonly table?: string | undefined;
}

/** The store of a limit that processes share, over PostgreSQL. */
export interface PostgresRateShares extends RateShares {
  createTable(): Promise<void>;
}

const defaultTable = "rate_shares";
/** Above this number of processes a limit is divided evenly. */
const mostMembers = 1000;

/**
 * The table, for a migration; only where it is not there. Rows live for seconds: after a crash of the server the processes
 * write them again, so nothing is lost that it need not log.
 */
export function rateSharesTableSql(name: Partial<TableName> = {}): string {
  return `CREATE UNLOGGED TABLE IF NOT EXISTS ${qualified({ table: defaultTable, ...name })} (
  limit_name text NOT NULL,
  member text NOT NULL,
  live double precision NOT NULL,
  bulk double precision NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (limit_name, member)
)`;
}

const checks = {
  limit: checkText,
  table: () => undefined,
  schema: () => undefined,
} satisfies Record<keyof RateSharesOptions, Check>;

/**
 * Divides a limit of `createRateLimit` among the processes that name it, by their demand. Each writes one small row a second
 * while it has requests; the row of a process that ends silently expires after ten seconds.
 * @throws {TypeError} for a wrong client or option.
 * @example
 * const shares = rateShares(pool, { limit: "openai text-embedding-3-small" });
 * await shares.createTable(); // or rateSharesTableSql() in a migration
 * const rateLimit = createRateLimit({ shares });
 */
export function rateShares(client: PostgresClient, options: RateSharesOptions): PostgresRateShares {
  checkOptions(options, checks);
  const { limit, table = defaultTable, schema } = options;
  checkText("limit", limit);
  const connection = connectionOf(client);
  const name = qualified({ table, schema });
  // SKIP LOCKED: two processes whose rows have both expired would wait for each other.
  const renewSql = `WITH expired AS (
  SELECT limit_name, member FROM ${name}
  WHERE limit_name = $1 AND member <> $2 AND expires_at < now() FOR UPDATE SKIP LOCKED
), forgotten AS (
  DELETE FROM ${name} AS old USING expired
  WHERE old.limit_name = expired.limit_name AND old.member = expired.member
), own AS (
  INSERT INTO ${name} (limit_name, member, live, bulk, expires_at)
  VALUES ($1, $2, $3::text::float8, $4::text::float8, now() + $5::text::float8 * interval '1 millisecond')
  ON CONFLICT (limit_name, member) DO UPDATE SET live = excluded.live, bulk = excluded.bulk, expires_at = excluded.expires_at
)
SELECT live, bulk FROM ${name} WHERE limit_name = $1 AND member <> $2 AND expires_at >= now() LIMIT ${mostMembers}`;
  const leaveSql = `DELETE FROM ${name} WHERE limit_name = $1 AND member = $2`;
  return {
    renew: async (member, { live, bulk }, keepMs) => {
      const rows = await connection.run(renewSql, [limit, member, String(live), String(bulk), String(keepMs)]);
      return rows.map((row) => ({ live: Number(row["live"]), bulk: Number(row["bulk"]) }));
    },
    leave: (member) => connection.run(leaveSql, [limit, member]),
    createTable: async () => {
      const create = (): Promise<unknown> => connection.run(rateSharesTableSql({ table, schema }), []);
      // If two processes create it at once, one fails, and finds it when it tries again.
      await create().catch(create);
    },
  };
}
