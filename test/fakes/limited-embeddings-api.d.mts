import type { Clock } from "sheaf";

interface Limits {
  readonly tokensPerMinute?: number;
  readonly requestsPerMinute?: number;
}
export interface FakeEmbeddingsApiOptions extends Limits {
  readonly shape?: "minute" | "10s";
  readonly style?: "openai" | "azure" | "voyage";
  readonly headers?: boolean;
  readonly maxInputs?: number;
  readonly maxRequestTokens?: number;
  readonly countTokens?: (text: string) => number;
  readonly latencyMs?: number;
  readonly clock?: Clock;
}
export interface FakeEmbeddingsApi {
  readonly fetch: typeof globalThis.fetch;
  /** Tightens or widens limits from now on. */
  setLimits(limits: Limits): void;
  /** From now on refuses everything as a used-up quota, or no longer. */
  setQuotaUsedUp(isUsedUp: boolean): void;
  counts(): Record<"requests" | "accepted" | "refused" | "wrong" | "tokens" | "inputs", number>;
}
export function fakeEmbeddingsApi(options?: FakeEmbeddingsApiOptions): FakeEmbeddingsApi;
