export { retryAfterMsOf } from "../adapters/api-client/api-error.ts";
export { boundedText, replyText, TooLarge } from "../adapters/shared/bounded-text.ts";
export { statusIn } from "../adapters/openai/client.ts";
export { isHang } from "../adapters/api-client/isolation.ts";
export { outputIn, usageIn } from "../adapters/llm/tokens-of.ts";
export { embeddingRequests, namedInput } from "../adapters/openai/requests.ts";
export type {
  EmbeddingCall,
  EmbeddingPart,
  SendEmbeddings,
  EmbeddingRequestsOptions,
} from "../adapters/openai/requests.ts";
export type { HeadersLike } from "../limits/told-limits.ts";
