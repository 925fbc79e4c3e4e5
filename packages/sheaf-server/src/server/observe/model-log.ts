import type { FastifyBaseLogger } from "fastify";
import { logBatches } from "../../observe/log.ts";
import type { Deployment } from "../models/deployment.ts";
import { uncachedReason } from "../models/uncached-reason.ts";

/** One line per failed batch and per worker that is replaced, and with LOG_LEVEL debug one per batch; never one per item. */
export function logModel(log: FastifyBaseLogger, deployment: Deployment): () => void {
  const { name } = deployment;
  const ends = [
    logBatches(log, name, deployment),
    deployment.onVersion(({ definition, settings, workers }) => {
      const { warning } = definition;
      if (warning !== undefined) log.warn({ model: name }, warning);
      const reason = settings.cacheMaxBytes > 0 ? uncachedReason(definition, settings) : undefined;
      if (reason !== undefined) log.warn({ model: name }, `its results are not cached: ${reason}`);
      workers?.onInstance(({ instance: { id, state }, why }) => {
        if (why !== undefined) log.warn({ model: name, worker: id, state }, why);
      });
    }),
    deployment.onLoad((error, version) => {
      if (version === undefined) log.error({ model: name, err: error }, "model failed to load");
      else log.info({ model: name, note: version.definition.note }, "model is ready");
    }),
  ];
  return () => ends.forEach((end) => end());
}
