import { once } from "node:events";
import type { Server } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { answerProblems, backlog, openApp, urlOnce } from "../http/app.ts";
import { checkCallers } from "../http/check-callers.ts";
import { crossOrigin } from "../http/cross-origin.ts";
import { showSchemasOnly, takeJsonAsBytes } from "../http/bodies/body.ts";
import { closeApp } from "../http/lifecycle/close-app.ts";
import { takeTurns } from "../http/lifecycle/connection-turns.ts";
import { InFlightReplies } from "../http/lifecycle/in-flight-replies.ts";
import { readInTurns } from "../http/thread-turns.ts";
import { sendCacheUse } from "../cache/cache-use.ts";
import { ProcessMetrics } from "../observe/process-metrics.ts";
import { RequestMetrics } from "../observe/request-metrics.ts";
import { queueTraces, traceRequests } from "../observe/tracing.ts";
import { Callers } from "../tenants/callers.ts";
import type { Settings } from "../settings/settings.ts";
import { Forwarding } from "./fronts/forward.ts";
import { HubLink } from "./fronts/hub-link.ts";
import type { Announced } from "./fronts/wire.ts";
import { noRun } from "./models/worker-model.ts";
import { longestAnswerMs } from "./models/deployment.ts";
import { Models } from "./models/models.ts";
import { batchSizeOf, ServedModel } from "./models/served-model.ts";
import { guardedPaths, modelRoutes } from "./plugin.ts";
import { listenDuringStartup } from "./startup-listener.ts";
import { warmUpHttp } from "./warm-up-http.ts";
import type { ModelDefinition } from "./contract/model-definition.ts";

export interface FrontOptions {
  readonly settings: Settings;
  readonly number: number;
  readonly hubPath: string;
  readonly httpPath: string;
  readonly names: readonly string[];
  /** Whether it listens before it can take requests, because no other front does. */
  readonly isFirst: boolean;
}

/** The requests that a front answers, by their routes; the hub answers all others. */
const ownRoutes = new Set([
  "/infer", "/infer/:model", "/v1/embeddings", "/rerank", "/v1/rerank", "/v2/rerank", "/v1/embed", "/v2/embed",
  "/embed", "/embed_all", "/predict", "/api/embed", "/api/embeddings", "/vectors", "/vectors/",
  "/v2/models/:model/infer", "/v2/models/:model/versions/:version/infer",
]); // prettier-ignore

const isOwn = ({ method, routeOptions }: FastifyRequest): boolean =>
  method === "POST" && routeOptions.url !== undefined && ownRoutes.has(routeOptions.url);

export interface RunningFront {
  readonly server: Server;
  /** Drains it. @returns whether every accepted request was finished. */
  close(graceMs?: number): Promise<boolean>;
}

/** A process that reads requests and writes replies; the hub runs their items. */
export async function serveFront(options: FrontOptions): Promise<RunningFront> {
  const { settings, number, hubPath, httpPath, names, isFirst } = options;
  const app = openApp(settings);
  holdConnections(app.server, Math.max(1, Math.floor(settings.maxConnections / Number(settings.httpProcesses))));
  const callers = new Callers(settings, app.log, { areBounded: false });
  app.addHook("onClose", async () => callers.close());
  const early = isFirst ? await listenDuringStartup(app, { settings, callers, models: names, holdMs: 0 }) : undefined;
  if (early !== undefined) app.log.info({ models: names }, `listening on ${early.url}`);
  const warm = warmUpHttp(settings, app.server).catch(() => undefined);
  const requests = new RequestMetrics();
  const processMetrics = new ProcessMetrics();
  const forwarding = new Forwarding({
    path: httpPath,
    isUp: () => link.isUp,
    isDraining: () => models?.isDraining === true,
  });
  let models: Models | undefined;
  let isReady!: () => void;
  const ready = new Promise<void>((resolve) => (isReady = resolve));
  const ids = new Map<string, number | undefined>();
  const link: HubLink = new HubLink({
    path: hubPath,
    front: number,
    figures: () => ({ requests: requests.families(), process: processMetrics.families() }),
    onDown: () => forwarding.fail(),
    onModels: async (announced, named) => {
      models ??= openModels(named);
      await follow(models, announced);
      isReady();
    },
    onUp: () => opened,
  });
  const traceOf = queueTraces();

  function openModels(named: readonly string[]): Models {
    const open = (definition: ModelDefinition): ServedModel => {
      const own = { ...settings, ...definition.settings };
      const id = ids.get(definition.name)!;
      const batcher = link.batcherOf({ name: definition.name, id }, batchSizeOf(definition, own));
      const model = new ServedModel(definition, own, {
        batcher,
        takesAnyList: true,
        callOf: (asked) => ({ tag: { ...asked, tag: traceOf(asked.tag) } }),
      });
      model.join(link);
      return model;
    };
    return new Models([], settings, open, undefined, named);
  }

  /** Serves what the hub serves. Versions that were replaced finish their calls. */
  async function follow(models: Models, announced: readonly Announced[]): Promise<void> {
    for (const { name, id, definition, failure } of announced) {
      const deployment = models.deployments.find((one) => one.name === name) ?? models.add(name);
      const isKnown = ids.has(name) && ids.get(name) === id;
      if (isKnown || (definition === undefined && failure === undefined)) continue;
      ids.set(name, id);
      const load = async (): Promise<ModelDefinition> => {
        if (definition === undefined) throw new Error(failure);
        return { ...definition, run: noRun };
      };
      await deployment.load({ name, waitsFor: "the hub", load }).catch(() => undefined);
    }
    const there = new Set(announced.map(({ name }) => name));
    for (const deployment of models.deployments) {
      if (there.has(deployment.name)) continue;
      ids.delete(deployment.name);
      void models.remove(deployment, longestAnswerMs(settings));
    }
  }

  const opened: Promise<InFlightReplies> = (async () => {
    await Promise.all([warm, ready]);
    const replies = new InFlightReplies(app);
    replies.cutUnread(app);
    takeTurns(app);
    await crossOrigin(app, settings.corsOrigins);
    const forward = (request: FastifyRequest, reply: FastifyReply): void => forwarding.forward(app, request, reply);
    await app.register(async (unknown) => {
      unknown.setNotFoundHandler(forward);
      // Before the body is read.
      unknown.addHook("onRequest", (request, reply) => forward(request, reply));
    });
    app.addHook("preClose", async () => forwarding.endStreams());
    await app.register(async (routes) => {
      routes.addHook("onRequest", (request, reply, done) => {
        if (isOwn(request)) done();
        else forward(request, reply);
      });
      takeJsonAsBytes(routes);
      showSchemasOnly(routes);
      answerProblems(routes, models!);
      checkCallers(routes, callers, guardedPaths);
      readInTurns(routes);
      if (settings.cacheMaxBytes > 0) sendCacheUse(routes);
      traceRequests(routes);
      requests.count(routes, isOwn);
      await modelRoutes(routes, models!);
    });
    await app.ready();
    if (early === undefined) {
      const { host, port } = settings;
      await urlOnce(once(app.server.listen({ host, port, backlog }), "listening"), app.server, settings);
    } else early.open();
    return replies;
  })();
  const replies = await opened;

  return {
    server: app.server,
    close: async (graceMs = settings.shutdownGraceMs) => {
      link.drain();
      const isComplete = await models!.close(graceMs);
      await closeApp(app, replies, graceMs);
      processMetrics.close();
      link.close();
      return isComplete;
    },
  };
}

/** `maxConnections` of a server in a cluster would make the listener look for another process, over and over. */
function holdConnections(server: Server, most: number): void {
  Object.assign(server, { maxConnections: undefined });
  let open = 0;
  server.on("connection", (socket) => {
    if (open === most) return void socket.destroy();
    open++;
    socket.once("close", () => open--);
  });
}
