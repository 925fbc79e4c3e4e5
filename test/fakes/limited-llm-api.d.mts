import type { Clock } from "sheaf";

export interface LimitedLlmApiOptions {
  readonly requests?: number;
  readonly tokens?: number;
  readonly input?: number;
  readonly output?: number;
  readonly style?: "openai" | "anthropic";
  readonly shape?: "minute" | "10s";
  readonly tells?: boolean;
  readonly firstMs?: number;
  readonly msPerToken?: number;
  readonly chunks?: number;
  readonly clock?: Clock;
}
export interface LlmBody {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly answer: number;
  readonly stream?: boolean;
  readonly max_tokens?: number;
}
export interface LimitedLlmApi {
  counts(): Record<"requests" | "refused" | "input" | "output", number>;
  call(body: LlmBody, signal?: AbortSignal): Promise<{ data: any; response: { headers: Record<string, string> } }>;
}
export function limitedLlmApi(options?: LimitedLlmApiOptions): LimitedLlmApi;
