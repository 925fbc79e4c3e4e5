import type { Connection, QueryClient } from "../shared/postgres/client.ts";
import { isRowError } from "../shared/postgres/row-error.ts";

export interface PatientEvents {
  failed(error: unknown, retryAfterMs: number): void;
  succeeded(): void;
}

/** Asks the batcher for a pause: nothing is wrong with the rows. */
export class DatabaseAway extends Error {
  override readonly name = "DatabaseAway";
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number, cause: unknown) {
    super("the log could not be written", { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

const firstRetryMs = 1000;
const lastRetryMs = 30_000;

/**
 * The client, whose errors ask the batcher for a pause: 1 s after the first, twice as long after each further one, 30 s at
 * most. Errors of rows pass as they are.
 */
export function patientClient(connection: Connection, events: PatientEvents): QueryClient {
  let retryAfterMs = firstRetryMs;
  return {
    async query(text, values) {
      try {
        const rows = await connection.run(text, values);
        retryAfterMs = firstRetryMs;
        events.succeeded();
        return { rows };
      } catch (error) {
        if (isRowError(error)) throw error;
        events.failed(error, retryAfterMs);
        const pause = new DatabaseAway(retryAfterMs, error);
        retryAfterMs = Math.min(lastRetryMs, 2 * retryAfterMs);
        throw pause;
      }
    },
  };
}
