import type { ModelDefinition } from "../contract/model-definition.ts";
import type { Settings } from "../../settings/settings.ts";
import { ModelCache } from "../../cache/model-cache.ts";
import { ResultCache } from "../../cache/result-cache.ts";
import { uncachedReason } from "./uncached-reason.ts";

/**
 * Opens a model's part of the cache; undefined if its results are not cached. `versionOf` gives the version that runs now, if it may
 * change.
 */
export type OpenCache = (
  definition: ModelDefinition,
  own: Settings,
  versionOf?: () => string | undefined,
) => ModelCache | undefined;

/** The cache that all models of a server share, CACHE_MAX_BYTES in all. */
export function cacheOpener({ cacheMaxBytes }: Settings): OpenCache {
  if (cacheMaxBytes === 0) return () => undefined;
  const cache = new ResultCache({ maxBytes: cacheMaxBytes });
  return (definition, own, versionOf) => {
    const isKept = own.cacheMaxBytes > 0 && uncachedReason(definition, own) === undefined;
    return isKept ? new ModelCache(cache, { ttlMs: own.cacheTtlMs, versionOf }) : undefined;
  };
}
