import type { FastifyInstance } from "fastify";
import type { ModelDefinition } from "../contract/model-definition.ts";
import type { Settings } from "../../settings/settings.ts";
import { ConfigError } from "../../settings/config.ts";
import type { ApiKey } from "../../tenants/api-keys.ts";
import { KeptResults } from "../../cache/kept-results.ts";
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
export function cacheOpener({ cacheMaxBytes }: Settings, onDisk?: KeptResults): OpenCache {
  if (cacheMaxBytes === 0) return () => undefined;
  const cache = new ResultCache({ maxBytes: cacheMaxBytes, onDisk });
  return (definition, own, versionOf) => {
    const isKept = own.cacheMaxBytes > 0 && uncachedReason(definition, own) === undefined;
    const nameOf = (running: string | undefined, apiKey: object | undefined): string | undefined => {
      const version = running ?? definition.version;
      // Of a model that may be another after a restart nothing is found again.
      if (version === undefined) return undefined;
      return JSON.stringify([definition.name, version, (apiKey as ApiKey | undefined)?.terms.name ?? null]);
    };
    return isKept ? new ModelCache(cache, { ttlMs: own.cacheTtlMs, versionOf, nameOf }) : undefined;
  };
}

/** The results in CACHE_DIR, until the app has closed; undefined without it. */
export async function openResults(app: FastifyInstance, settings: Settings): Promise<KeptResults | undefined> {
  const { cacheDir, cacheMaxBytes } = settings;
  if (cacheDir === undefined) return undefined;
  if (cacheMaxBytes === 0) throw new ConfigError("CACHE_DIR needs a cache: set CACHE_MAX_BYTES.");
  const results = await KeptResults.open(cacheDir, cacheMaxBytes, app.log);
  app.addHook("onClose", () => results.close());
  return results;
}
