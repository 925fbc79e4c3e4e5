import type { FastifyBaseLogger } from "fastify";
import { logBatches } from "../../observe/log.ts";
import { messageOf } from "../../problems/problem.ts";
import type { Deployment } from "../models/deployment.ts";
import { failedLoad } from "./failed-load.ts";
import { uncachedReason } from "../models/uncached-reason.ts";

/** Logs one line per failed batch and per replaced worker, and with LOG_LEVEL=debug one per batch; never one per item. */
export function logModel(log: FastifyBaseLogger, deployment: Deployment): () => void {
  const { name } = deployment;
  const ends = [
    logBatches(log, name, deployment),
    deployment.onServed((model) => {
      const { definition, settings, workers } = model;
      const { warning } = definition;
      if (warning !== undefined) log.warn({ model: name }, warning);
      const reason = settings.cacheMaxBytes > 0 ? uncachedReason(definition, settings) : undefined;
      if (reason !== undefined) log.warn({ model: name }, `its results are not cached: ${reason}`);
      workers?.onInstance(({ instance: { id, state }, why }) => {
        if (why === undefined) return;
        const warn = (): void => log.warn({ model: name, worker: id, state }, why);
        if (model.state !== "loading") return warn();
        // If the load fails for this reason, its own log line says so.
        model.ready().then(warn, (error: unknown) => messageOf(error) !== why && warn());
      });
    }),
    deployment.onLoad(({ model, error, versionName, versionBefore }) => {
      const load = { model: name, version: versionName, versionBefore };
      if (model === undefined) return log.error({ ...load, ...failedLoad(error) }, "model failed to load");
      const message =
        versionBefore === undefined ? "model is ready" : "model is ready, and replaces the version before";
      const { note, unreadFields } = model.definition;
      log.info({ ...load, note, unreadFields }, message);
    }),
  ];
  return () => ends.forEach((end) => end());
}
