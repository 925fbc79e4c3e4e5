export { pacedCalls } from "./paced-calls.ts";
export type { PacedCallOptions, PacedCalls, PacedCallsOptions, PacedContext } from "./paced-calls.ts";
export { pacedModel } from "./paced-model.ts";
export type { PacedModelOptions, PacingMiddleware } from "./paced-model.ts";
export type { TokenUsage } from "./tokens-of.ts";
