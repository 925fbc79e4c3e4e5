export { DataLoader } from "./loader.ts";
export type { BatchLoadFn, CacheMap, DataLoaderOptions } from "./options.ts";
