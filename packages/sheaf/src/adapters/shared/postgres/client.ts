import { describe } from "../../../shared/describe.ts";
/** A Pool, PoolClient or Client of `pg`, a PGlite, or anything with their `query`. */
export interface QueryClient {
  query(text: string, values: string[]): Promise<{ readonly rows: readonly unknown[] }>;
}

export interface UnsafeClient {
  unsafe(text: string, values: string[]): PromiseLike<readonly unknown[]>;
}

/**
 * The user's own client, recognised by its methods: a function with `unsafe` is postgres.js, an object with `query` and
 * `execProtocol` is PGlite, another object with `query` is `pg`.
 */
export type PostgresClient = QueryClient | UnsafeClient;

export type ResultRow = Record<string, unknown>;

export interface Connection {
  /**
   * Every parameter is text, so that no driver's own idea of a type gets between. The signal is asked for only where the
   * client can cancel a statement (postgres.js); `pg` and PGlite let it run to its end.
   */
  run(text: string, values: string[], context?: { readonly signal: AbortSignal }): Promise<readonly ResultRow[]>;
  /** Statements that it runs concurrently: 1 for a single connection, which would only queue them. */
  readonly concurrency: number;
  /** How this driver writes a Date into a column without time zone: `pg` in local time, the others in UTC. */
  readonly dates: "local" | "utc";
}

/** @throws {TypeError} if it is not one of the three clients; the message says what it got. */
export function connectionOf(client: PostgresClient): Connection {
  const { unsafe, query, options, execProtocol, totalCount } = (client ?? {}) as {
    unsafe?: unknown;
    query?: unknown;
    options?: { max?: unknown };
    execProtocol?: unknown;
    totalCount?: unknown;
  };
  const poolSize = typeof options?.max === "number" ? Math.max(1, Math.min(4, options.max)) : 4;
  if (typeof client === "function" && typeof unsafe === "function") {
    return { run: runUnsafe(client), concurrency: poolSize, dates: "utc" };
  }
  if (typeof query === "function") {
    const run: Connection["run"] = async (text, values) =>
      (await (client as QueryClient).query(text, values)).rows as readonly ResultRow[];
    if (typeof execProtocol === "function") return { run, concurrency: 1, dates: "utc" };
    return { run, concurrency: typeof totalCount === "number" ? poolSize : 1, dates: "local" };
  }
  throw new TypeError(
    `client must be a Pool or Client of pg, the sql function of postgres.js, or a PGlite, got ${describe(client)}`,
  );
}

function runUnsafe(client: UnsafeClient): Connection["run"] {
  return async (text, values, context) => {
    const signal = context?.signal;
    signal?.throwIfAborted();
    const pending = client.unsafe(text, values) as PromiseLike<readonly ResultRow[]> & { cancel?: () => void };
    const cancel = (): void => pending.cancel?.();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      // Without the holes that a result has after another statement of the connection failed half-way
      // (porsager/postgres#1181).
      return (await pending).filter(() => true);
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  };
}
