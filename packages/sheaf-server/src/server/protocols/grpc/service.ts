import { Server, setLogger } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import type { FastifyInstance } from "fastify";
import type { Models } from "../../models/models.ts";
import type { RequestMetrics } from "../../../observe/request-metrics.ts";
import type { Settings } from "../../../settings/settings.ts";
import { costs } from "../../../shared/costs.ts";
import type { Callers } from "../../../tenants/callers.ts";
import { callGuard } from "./calls.ts";
import { Connections } from "./connections.ts";
import { protocol, service } from "./definition.ts";
import { addHealth, healthProtocol } from "./health.ts";
import { inference } from "./infer.ts";
import { bounded, reflected } from "./reflection.ts";
import { metadataMethods } from "./metadata-methods.ts";

/** Silence after which a connection is pinged; without an answer it is closed after the same time again. */
const keepAliveMs = 30_000;

export interface GrpcService {
  /** `host:port` where it listens; undefined before. */
  readonly address: string | undefined;
}

/**
 * The models of an app over gRPC, on GRPC_PORT: from when the app is ready until it closes.
 * `requests` counts the calls beside the requests of HTTP.
 */
export function serveGrpc(
  app: FastifyInstance,
  {
    models,
    settings,
    requests,
    callers,
  }: { models: Models; settings: Settings; requests: RequestMetrics; callers: Callers },
): GrpcService {
  // It would write to the console, a line for each name in metadata that is not one.
  const log = (...words: readonly unknown[]): void => app.log.debug(words.join(" "));
  setLogger({ error: log, info: log, debug: log });
  const server = new Server({
    "grpc.enable_channelz": 0,
    "grpc.max_receive_message_length": settings.maxBodyBytes,
    "grpc.max_concurrent_streams": costs.callsPerConnection,
    "grpc.max_connection_idle_ms": settings.keepAliveTimeoutMs,
    "grpc.keepalive_time_ms": keepAliveMs,
    "grpc.keepalive_timeout_ms": keepAliveMs,
    interceptors: [callGuard(settings, callers, () => connections)],
  });
  // Of every method: whether it is a stream, which may last.
  const methods = new Map<string, boolean>();
  const adding: Pick<Server, "addService"> = {
    addService(definition, handlers) {
      for (const { path, requestStream, responseStream } of Object.values(definition))
        methods.set(path, requestStream || responseStream);
      server.addService(definition, handlers);
    },
  };
  const infer = inference({ models, log: app.log, requests });
  adding.addService(service, {
    ...metadataMethods(models, app.log),
    ModelInfer: infer.unary,
    ModelStreamInfer: infer.stream,
  });
  new ReflectionService(reflected({ ...protocol, ...healthProtocol })).addToServer(bounded(adding));
  const endHealth = addHealth(adding, models);
  const connections = new Connections(server, {
    settings,
    isStream: (path) => methods.get(path) === true,
    // Unknown paths share one series.
    onEnd: (path, status, ms) => requests.record(methods.has(path) ? path : "none", status, ms),
  });
  let address: string | undefined;
  app.addHook("onReady", async () => {
    address = await connections.listen();
    app.log.info(`gRPC listening on ${address}`);
  });
  app.addHook("onClose", async () => {
    endHealth();
    infer.close();
    await connections.close();
    server.forceShutdown();
  });
  return {
    get address() {
      return address;
    },
  };
}
