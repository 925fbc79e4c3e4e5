export {
  fakeEmbeddingsApi,
  type FakeEmbeddingsApi,
  type FakeEmbeddingsApiCounts,
  type FakeEmbeddingsApiOptions,
  type ProviderLimits,
} from "./fake-embeddings-api.ts";
export type { ProviderShape } from "./provider-bucket.ts";
export type { ProviderStyle } from "./provider-headers.ts";
