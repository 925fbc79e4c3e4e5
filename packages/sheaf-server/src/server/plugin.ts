import type { FastifyInstance, RouteOptions } from "fastify";
import { within } from "sheaf/internal";
import { publishBatches } from "sheaf/node";
import { AdviceLog } from "./observe/advice-log.ts";
import { OverloadLog } from "./observe/overload-log.ts";
import { sendCacheUse } from "../cache/cache-use.ts";
import type { KeptResults } from "../cache/kept-results.ts";
import { cacheOpener, openResults } from "./models/open-cache.ts";
import { openRecord } from "./models/open-record.ts";
import type { RecordFile } from "../observe/record-file.ts";
import { answerProblems } from "../http/app.ts";
import { checkCallers, isOperator } from "../http/check-callers.ts";
import { readInTurns } from "../http/thread-turns.ts";
import { showSchemasOnly, takeJsonAsBytes } from "../http/bodies/body.ts";
import type { Hub } from "./fronts/hub.ts";
import { ConfigError } from "../settings/config.ts";
import { backgroundWork } from "./batches/index.ts";
import { cacheFamilies } from "../observe/cache-metrics.ts";
import { logModel } from "./observe/model-log.ts";
import { ServedModel } from "./models/served-model.ts";
import type { ModelSource } from "./models/deployment.ts";
import type { ModelDefinition } from "./contract/model-definition.ts";
import { checkServed, Models } from "./models/models.ts";
import { repositoryPaths, repositoryRoutes } from "./protocols/kserve/repository.ts";
import { kserveRoutes } from "./protocols/kserve/routes.ts";
import { pageEventsPath, publicPagePaths } from "../dashboard/plugin.ts";
import { dashboardRoutes } from "./observe/dashboard.ts";
import { healthRoutes } from "../http/health.ts";
import { healthOf } from "./observe/health.ts";
import { healthPaths } from "../http/health-paths.ts";
import { fleetFamilies } from "./fleet/fleet-metrics.ts";
import { cohereRoutes } from "./protocols/cohere.ts";
import { ollamaRoutes } from "./protocols/ollama.ts";
import { teiRoutes } from "./protocols/tei/routes.ts";
import { weaviateRoutes, wellKnownRoutes } from "./protocols/weaviate.ts";
import { inferRoutes } from "./protocols/infer.ts";
import { metricsPath, metricsRoute } from "../http/metrics.ts";
import { RequestMetrics } from "../observe/request-metrics.ts";
import { openaiRoutes } from "./protocols/openai.ts";
import { errorFormOf } from "../problems/error-forms.ts";
import { rerankRoutes } from "./protocols/rerank.ts";
import { forbidden, unauthorized } from "../http/schema/route-schema.ts";
import { defaultSettings, type Settings } from "../settings/settings.ts";
import { traceRequests } from "../observe/tracing.ts";
import { workerFamilies } from "./observe/worker-metrics.ts";
import { roleOf } from "../settings/role.ts";
import { Callers, needsKey } from "../tenants/callers.ts";
import { tenantFamilies } from "../observe/tenant-metrics.ts";

export interface SheafPluginOptions {
  /** The models to serve; the first answers `/infer`. At least one. Required. */
  readonly models: readonly ModelDefinition[];
  /**
   * Settings that differ from those of `sheaf serve`. Settings of the socket (host, port, connections …) have no effect: the app has
   * its own.
   * @default defaultSettings
   */
  readonly settings?: Partial<Settings> | undefined;
}

/** Opens models on this machine; they start to load. At least one. */
export function openModels(
  models: readonly (ModelDefinition | ModelSource)[],
  settings: Partial<Settings> = {},
  onDisk?: KeptResults,
  record?: RecordFile,
): Models {
  const shared = { ...defaultSettings, ...settings };
  const openCache = cacheOpener(shared, onDisk);
  return new Models(models, shared, (definition) => {
    const own = { ...shared, ...definition.settings };
    return new ServedModel(definition, own, { cache: openCache(definition, own), record });
  });
}

/**
 * Fastify plugin with every route of the server: `app.register(sheafPlugin, { models: [ … ] })`, with or without a `prefix`. Its
 * hooks, body parser and error replies do not affect the rest of the app. Closing the app drains the models.
 */
export async function sheafPlugin(app: FastifyInstance, options: SheafPluginOptions): Promise<void> {
  refuseProcesses(options.settings);
  const callers = new Callers({ ...defaultSettings, ...options.settings }, app.log);
  app.addHook("onClose", async () => callers.close());
  await serveHttp(app, options, { requests: new RequestMetrics(), callers });
}

/** @throws {ConfigError} An app and its routes stay in the process that made them. */
export function refuseProcesses({ httpProcesses = 1 }: Partial<Settings> = {}): void {
  if (httpProcesses !== 1)
    throw new ConfigError("HTTP_PROCESSES is only for sheaf serve: an app of your own runs in its one process.");
}

/** The part of a server that its protocols share. */
export interface SharedParts {
  readonly requests: RequestMetrics;
  readonly callers: Callers;
  /**
   * The other end of the processes that read requests.
   * @default none: this process does
   */
  readonly hub?: Hub | undefined;
}

/** Like `sheafPlugin`, with parts that gRPC shares, and possibly with models that are open already. */
export async function serveHttp(
  app: FastifyInstance,
  options: Pick<SheafPluginOptions, "settings"> & { readonly models: readonly ModelDefinition[] | Models },
  { requests, callers, hub }: SharedParts,
): Promise<void> {
  const settings = { ...defaultSettings, ...options.settings };
  if (!(options.models instanceof Models)) checkServed(options.models, options.settings);
  const models =
    options.models instanceof Models
      ? options.models
      : openModels(options.models, options.settings, await openResults(app, settings), await openRecord(app, settings));
  takeJsonAsBytes(app);
  showSchemasOnly(app);
  answerProblems(app, models);
  checkCallers(app, callers, guardedPaths);
  readInTurns(app);
  if (needsKey(settings)) app.addHook("onRoute", showRefusal);
  // While results still come, new requests get 503 instead of a refused connection; then Fastify stops listening.
  app.addHook("preClose", async () => void (await models.close(settings.shutdownGraceMs)));
  if (settings.cacheMaxBytes > 0) sendCacheUse(app);
  models.watch((deployment) => {
    const ends = [logModel(app.log, deployment), publishBatches(deployment)];
    return () => ends.forEach((end) => end());
  });
  const logs = [AdviceLog, OverloadLog].map((Log) => new Log(app.log, () => models.deployments));
  app.addHook("onClose", async () => logs.forEach((log) => log.close()));
  traceRequests(app);
  // Before the routes whose requests batches hold.
  const work = await backgroundWork(app, models, callers, guardedPaths.operators);
  healthRoutes(app, (request) => healthOf(models, isOperator(callers, request)));
  wellKnownRoutes(app, models);
  // A fleet worker takes its items from the queue: a request sent to it directly would jump that queue.
  if (roleOf(settings) !== "worker") await modelRoutes(app, models);
  // Loading a model means running its code: never without a key.
  if (models.repository !== undefined && needsKey(settings)) repositoryRoutes(app, models, models.repository);
  // A model is loaded or unloaded once no front sends items to another.
  if (hub !== undefined)
    app.addHook("onSend", async ({ method }) => void (method === "POST" && (await within(hub.followed(), followMs))));
  const more = () => [
    ...workerFamilies(models),
    ...cacheFamilies(models.all),
    ...fleetFamilies(models),
    ...tenantFamilies(callers),
    ...work.families(),
  ];
  metricsRoute(app, models, more, requests, hub && (() => hub.figures()));
  await dashboardRoutes(app, models, callers, { batches: () => work.figures(), fronts: () => hub?.coreShares });
}

/** The routes of all protocols, of requests that run items and of those about models. */
export async function modelRoutes(app: FastifyInstance, models: Models): Promise<void> {
  inferRoutes(app, models);
  openaiRoutes(app, models);
  rerankRoutes(app, models);
  teiRoutes(app, models);
  cohereRoutes(app, models);
  ollamaRoutes(app, models);
  await weaviateRoutes(app, models);
  await kserveRoutes(app, models);
}

/** A front that hangs must not keep the answer of a load. */
const followMs = 2000;

export const guardedPaths = {
  open: new Set([...healthPaths, ...publicPagePaths]),
  operators: new Set([metricsPath, pageEventsPath, ...repositoryPaths]),
};

/** Adds the replies to a missing or insufficient key to a route's description. */
function showRefusal(route: RouteOptions & { readonly prefix: string }): void {
  const { schema, url, prefix } = route;
  if (schema?.response === undefined || schema.security?.length === 0) return;
  // A copy: other apps of this process share the schemas.
  const form = errorFormOf(url);
  const isForOperators = guardedPaths.operators.has(url.slice(prefix.length));
  route.schema = {
    ...schema,
    response: { ...schema.response, 401: unauthorized(form), ...(isForOperators && { 403: forbidden(form) }) },
  };
}
