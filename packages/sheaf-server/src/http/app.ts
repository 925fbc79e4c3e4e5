import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import Fastify, { LogController, type FastifyError, type FastifyInstance } from "fastify";
import { pino } from "pino";
import { checkHosts, hostWarning } from "./allowed-hosts.ts";
import { answerClientErrors } from "./client-errors.ts";
import { logDestination } from "../observe/log-destination.ts";
import { logProblem } from "../observe/log.ts";
import { clientClosedRequest, problemOf, type Problem } from "../problems/problem.ts";
import { sendProblem } from "./replies.ts";
import { requestId } from "./request-id.ts";
import type { Settings } from "../settings/settings.ts";

/**
 * Creates a Fastify app with the limits of the settings and this project's log, request ids and answers to broken requests.
 * `longestAnswerMs` is how long an answer may take to begin.
 */
export function openApp(settings: Settings, longestAnswerMs: number = settings.requestTimeoutMs): FastifyInstance {
  const app = Fastify({
    loggerInstance: pino({ level: settings.logLevel }, logDestination()),
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger would cost every request; the few log lines about a request name it themselves.
    childLoggerFactory: (logger) => logger,
    bodyLimit: settings.maxBodyBytes,
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: true },
    genReqId: requestId,
    requestIdHeader: false,
    requestTimeout: settings.uploadTimeoutMs,
    keepAliveTimeout: settings.keepAliveTimeoutMs,
    // If nothing moves on a connection for longer than a request may take to arrive and wait, its client does not read. Its reply
    // would hold memory, and one of MAX_CONNECTIONS, forever.
    connectionTimeout: settings.uploadTimeoutMs + longestAnswerMs,
    http: {
      headersTimeout: Math.min(60_000, settings.uploadTimeoutMs),
      // How often Node looks for slow uploads; at its own 30 s they would stay up to a minute.
      connectionsCheckingInterval: Math.min(5000, Math.ceil(settings.uploadTimeoutMs / 4)),
    },
    forceCloseConnections: "idle",
    clientErrorHandler: answerClientErrors,
    frameworkErrors: (error, _request, reply) => sendProblem(reply, problemOf(error)),
    // The routes answer it themselves, with a problem document.
    return503OnClosing: false,
  }) as unknown as FastifyInstance;
  app.server.maxConnections = settings.maxConnections;
  checkHosts(app, settings);
  return app;
}

/**
 * Turns every error into a problem document and adds the request id to every reply. Replies of a draining server close their
 * connections.
 */
export function answerProblems(app: FastifyInstance, server: { readonly isDraining: boolean }): void {
  app.setErrorHandler((error: FastifyError | Problem, request, reply) => {
    // Node's error for an interrupted upload.
    const isCutOff = request.raw.destroyed && (error as { code?: unknown }).code === "ECONNRESET";
    const problem = isCutOff ? clientClosedRequest() : problemOf(error);
    logProblem(request, problem);
    sendProblem(reply, problem);
  });
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    done();
  });
  app.addHook("onSend", (_request, reply, _payload, done) => {
    if (server.isDraining) reply.header("connection", "close");
    done();
  });
}

/**
 * Most connections that wait to be accepted. Node's default of 511 overflows when many come during a short pause, and a client whose
 * connection was dropped retries only a second later. The kernel has a limit of its own (net.core.somaxconn on Linux, 4096).
 */
export const backlog = 4096;

/** Logs what an operator may not have meant. */
export function warnOfSettings(app: FastifyInstance, settings: Settings): void {
  const { requestTimeoutMs, shutdownGraceMs } = settings;
  const warning = hostWarning(settings);
  if (warning !== undefined) app.log.warn(warning);
  if (requestTimeoutMs > shutdownGraceMs)
    app.log.warn(
      `REQUEST_TIMEOUT_MS (${requestTimeoutMs}) exceeds SHUTDOWN_GRACE_MS (${shutdownGraceMs}): a shutdown cuts off requests that could still be answered.`,
    );
}

export async function listen(app: FastifyInstance, settings: Settings): Promise<string> {
  const { host, port } = settings;
  warnOfSettings(app, settings);
  return urlOnce(app.listen({ host, port, backlog }), app.server, settings);
}

/** The address of a server, once it listens. @throws {Error} naming the settings that it came from. */
export async function urlOnce(
  listening: Promise<unknown>,
  server: Server,
  { host, port }: Pick<Settings, "host" | "port">,
): Promise<string> {
  await listeningOn(listening, { host, port, variable: "PORT" });
  return `http://${addressOf(server)}`;
}

/** Resolves with `listening`. @throws {Error} naming the settings, of which `variable` is the port's. */
export async function listeningOn(
  listening: Promise<unknown>,
  { host, port, variable }: { readonly host: string; readonly port: number; readonly variable: string },
): Promise<void> {
  try {
    await listening;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const flag = `--${variable.toLowerCase().replace("_", "-")}`;
    const why =
      code === "EADDRINUSE"
        ? `another program listens there. Choose another port with ${variable} or ${flag}; 0 takes any that is free.`
        : message;
    throw new Error(`Cannot listen on ${host}, port ${port} (HOST, ${variable}): ${why}`, { cause: error });
  }
}

/** `host:port` of a server that listens. */
export function addressOf(server: Pick<Server, "address">): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `${family === "IPv6" ? `[${address}]` : address}:${port}`;
}
