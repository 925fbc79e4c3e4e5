import type { DetailedResult } from "sheaf";

/** A result with its batch and its times; all three 0 where it came from the cache. Not to be changed. */
export type Served = Pick<DetailedResult<unknown>, "value" | "queueMs" | "runMs" | "batchSize">;
