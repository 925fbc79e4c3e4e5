/**
 * Where to start with a remote embeddings API: 100 inputs fill a request well, 20 ms are little beside its answer, and
 * OpenAI's API takes 300,000 tokens in a request.
 */
export const apiDefaults = { maxBatchSize: 100, maxWaitMs: 20, concurrency: 8, maxBatchWeight: 300_000 } as const;
