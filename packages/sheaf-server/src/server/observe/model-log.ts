import type { FastifyBaseLogger } from "fastify";
import { logBatches } from "../../observe/log.ts";
import { messageOf } from "../../problems/problem.ts";
import type { Deployment } from "../models/deployment.ts";
import { failedLoad } from "./failed-load.ts";
import { uncachedReason } from "../models/uncached-reason.ts";

/** One line per failed batch and per worker that is replaced, and with LOG_LEVEL debug one per batch; never one per item. */
export function logModel(log: FastifyBaseLogger, deployment: Deployment): () => void {
  const { name } = deployment;
  const ends = [
    logBatches(log, name, deployment),
    deployment.onVersion((version) => {
      const { definition, settings, workers } = version;
      const { warning } = definition;
      if (warning !== undefined) log.warn({ model: name }, warning);
      const reason = settings.cacheMaxBytes > 0 ? uncachedReason(definition, settings) : undefined;
      if (reason !== undefined) log.warn({ model: name }, `its results are not cached: ${reason}`);
      workers?.onInstance(({ instance: { id, state }, why }) => {
        if (why === undefined) return;
        const warn = (): void => log.warn({ model: name, worker: id, state }, why);
        if (version.state !== "loading") return warn();
        // A load that fails for this reason says it itself.
        version.ready().then(warn, (error: unknown) => messageOf(error) !== why && warn());
      });
    }),
    deployment.onLoad(({ version, error, versionName, versionBefore }) => {
      const load = { model: name, version: versionName, versionBefore };
      if (version === undefined) return log.error({ ...load, ...failedLoad(error) }, "model failed to load");
      const message =
        versionBefore === undefined ? "model is ready" : "model is ready, and replaces the version before";
      log.info({ ...load, note: version.definition.note }, message);
    }),
  ];
  return () => ends.forEach((end) => end());
}
