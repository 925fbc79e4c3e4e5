/** The end of one request: an HTTP status, or why there is none (`ECONNREFUSED`, `closed`, `bad response`). */
export interface RequestEnd {
  readonly status: number | string;
  /** The first 2 KiB of the reply, where it was not 2xx. */
  readonly body?: string | undefined;
  /** How long a refusal asks its client to wait. */
  readonly retryAfterMs?: number | undefined;
}

/** Where load goes. The generator knows no more about it, so that its arithmetic runs on a virtual clock too. */
export interface Target {
  /**
   * Sends the request number `index`, or lets it wait for a connection. Calls back exactly once, never before it
   * returns, unless the returned function cancels it first.
   */
  send(index: number, done: (outcome: RequestEnd) => void): () => void;
  close(): void;
  /** Requests that had to wait for a connection because the pool stood at its cap. */
  readonly waited: number;
}

export const succeeded = (status: number | string): boolean =>
  typeof status === "number" && status >= 200 && status < 300;
