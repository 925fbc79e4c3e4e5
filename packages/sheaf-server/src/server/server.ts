import type { FastifyInstance } from "fastify";
import { checkNames, closeChecks, withOptions, type Closing } from "sheaf/internal";
import { listen, openApp } from "../http/app.ts";
import { closeApp } from "../http/lifecycle/close-app.ts";
import { answerUnknownRoutes } from "../http/unknown-routes.ts";
import { documentRoutes } from "./protocols/openapi.ts";
import { ConfigError, type ModelEntry } from "../settings/config.ts";
import type { ModelSource } from "./models/deployment.ts";
import type { ModelDefinition } from "./contract/model-definition.ts";
import { checkServed, type Models } from "./models/models.ts";
import { FolderRepository } from "./models/repository/repository.ts";
import { FolderWatch } from "./models/repository/watch.ts";
import { openResults } from "./models/open-cache.ts";
import { Hub } from "./fronts/hub.ts";
import { openRecord } from "./models/open-record.ts";
import { openModels, refuseProcesses, serveHttp } from "./plugin.ts";
import { RequestMetrics } from "../observe/request-metrics.ts";
import { takeTurns } from "../http/lifecycle/connection-turns.ts";
import { InFlightReplies } from "../http/lifecycle/in-flight-replies.ts";
import { defaultSettings, type Settings } from "../settings/settings.ts";
import { crossOrigin } from "../http/cross-origin.ts";
import { roleOf } from "../settings/role.ts";
import { Callers } from "../tenants/callers.ts";

export interface ServerOptions {
  /**
   * The models to serve; the first answers `/infer`. At least one. Required.
   * @example
   * createServer({ models: [workerModel(builtinModels["use-lite"](), defaultSettings)] });
   */
  readonly models: readonly ModelDefinition[];
  /**
   * Settings that differ from those of `sheaf serve`.
   * @default defaultSettings
   */
  readonly settings?: Partial<Settings> | undefined;
}

/** Models that a command names: sources that have to be inspected first, and a folder. */
interface SourceOptions extends Omit<ServerOptions, "models"> {
  readonly models: readonly (ModelDefinition | ModelSource)[];
  /** The folder's path, and settings for the models in it. */
  readonly modelsFolder?: Pick<ModelEntry, "model" | "settings"> | undefined;
  /** Default: those of the settings. */
  readonly callers?: Callers | undefined;
  /**
   * The socket where fronts connect.
   * @default none: this process reads requests
   */
  readonly hubPath?: string | undefined;
}

export interface SheafServer {
  /** The Fastify instance, for routes and hooks of your own before `listen`. */
  readonly app: FastifyInstance;
  /** `host:port` of gRPC, once the app is ready; undefined without GRPC_PORT. */
  readonly grpcAddress: string | undefined;
  /** Starts to listen; models go on loading. @returns the URL it listens on. */
  listen(): Promise<string>;
  /** Resolves when every model is ready; rejects with the first failure. */
  ready(): Promise<void>;
  /**
   * Takes no more requests, finishes accepted ones, releases everything. Requests left after `graceMs`
   * get 503. @returns whether everything was finished.
   */
  close(options?: {
    /**
     * Time for accepted requests to finish, in milliseconds.
     * @default the setting `shutdownGraceMs`
     */
    readonly graceMs?: number | undefined;
  }): Promise<boolean>;
}

/** A server with the parts that commands and tests look at. */
export interface RunningServer extends SheafServer {
  readonly models: Models;
  readonly settings: Settings;
  readonly hub: Hub | undefined;
}

/** The HTTP server over models. Nothing listens before `listen()`, models load at once. */
export async function createServer(options: ServerOptions): Promise<SheafServer> {
  checkNames(options, { models: true, settings: true });
  checkServed(options.models, options.settings);
  refuseProcesses(options.settings);
  return serverOn(openApp({ ...defaultSettings, ...options.settings }), options);
}

/** Like `createServer`, on an app that is open already and has no routes yet. */
export async function serverOn(app: FastifyInstance, options: SourceOptions): Promise<RunningServer> {
  const settings = { ...defaultSettings, ...options.settings };
  if (settings.batchesDir !== undefined && roleOf(settings) !== "alone")
    throw new ConfigError("A fleet runs no batches: remove BATCHES_DIR, or NATS_URL.");
  if (settings.recordFile !== undefined && roleOf(settings) === "worker")
    throw new ConfigError("In a fleet the gateways record calls: remove RECORD_FILE from this worker.");
  // Imported only if needed: the clients of NATS and gRPC take megabytes.
  const { joinFleet } = roleOf(settings) === "alone" ? {} : await import("./fleet/join-fleet.ts");
  const { serveGrpc } = settings.grpcPort === undefined ? {} : await import("./protocols/grpc/service.ts");
  const onDisk = await openResults(app, settings);
  const record = await openRecord(app, settings);
  const fleet = joinFleet?.(options.models, settings, app.log, onDisk, record);
  const models = fleet?.models ?? openModels(options.models, options.settings, onDisk, record);
  if (options.modelsFolder !== undefined) {
    const repository = await FolderRepository.open(options.modelsFolder, { models, settings, log: app.log });
    models.repository = repository;
    if (settings.watch) {
      const watch = new FolderWatch(repository, app.log);
      app.addHook("onClose", async () => watch.close());
    }
  }
  const replies = new InFlightReplies(app);
  replies.cutUnread(app);
  takeTurns(app);
  answerUnknownRoutes(app);
  await crossOrigin(app, settings.corsOrigins);
  await documentRoutes(app, models, settings);
  const callers = options.callers ?? new Callers(settings, app.log);
  app.addHook("onClose", async () => callers.close());
  const hub = options.hubPath === undefined ? undefined : new Hub(models, callers, options.hubPath);
  const parts = { requests: new RequestMetrics(), callers, hub };
  await app.register((routes) => serveHttp(routes, { models, settings }, parts));
  const grpc = serveGrpc?.(app, { models, settings, ...parts });

  return {
    app,
    models,
    settings,
    hub,
    get grpcAddress() {
      return grpc?.address;
    },
    listen: () => listen(app, settings),
    ready: () => models.ready(),
    close: withOptions(closeChecks, async ({ graceMs = settings.shutdownGraceMs }: Closing) => {
      try {
        hub?.close();
        const isComplete = await models.close(graceMs);
        await closeApp(app, replies, graceMs);
        return isComplete;
      } finally {
        // Last, so that a NATS server that hangs delays none of our clients.
        await fleet?.leave();
      }
    }),
  };
}
