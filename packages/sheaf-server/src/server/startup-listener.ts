import { once } from "node:events";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import { backlog, urlOnce, warnOfSettings } from "../http/app.ts";
import { modelHead } from "./contract/model-head.ts";
import { Problem } from "../problems/problem.ts";
import { errorDocument, errorFormOf } from "../problems/error-forms.ts";
import { packageVersion } from "../shared/version.ts";
import { requestId } from "../http/request-id.ts";
import { healthPaths } from "../http/health-paths.ts";
import type { Settings } from "../settings/settings.ts";
import type { Callers } from "../tenants/callers.ts";

/** An app's server that listens before the app has its routes. */
export interface StartupListener {
  readonly url: string;
  /** Lets the app answer from now on, on open connections too. Call it after `app.ready()`. */
  open(): void;
  /** Instead of `open`: releases the port. */
  close(): void;
}

/** Most requests held until the app answers; further ones get 503. */
const maxHeld = 1000;

export interface StartupOptions {
  readonly settings: Settings;
  readonly callers: Callers;
  readonly models: readonly string[];
  /** How long a process that loads no model holds requests during its start before it refuses them. */
  readonly holdMs: number;
  /**
   * The hub's socket, for requests that fronts pass on.
   * @default HOST and PORT
   */
  readonly path?: string | undefined;
}

/**
 * Listens while the app is still being assembled: health routes and `/api/version` answer, `/v1/models` lists the models' names,
 * everything else gets 503 with `Retry-After`.
 */
export async function listenDuringStartup(
  app: FastifyInstance,
  { settings, callers, models, holdMs, path }: StartupOptions,
): Promise<StartupListener> {
  const { server } = app;
  if (path === undefined) warnOfSettings(app, settings);
  const ofApp = server.listeners("request") as RequestListener[];
  server.removeAllListeners("request");
  const held = new Set<() => void>();
  const early = (request: IncomingMessage, response: ServerResponse): void => {
    if (holdMs === 0 || isAboutHealth(request) || held.size >= maxHeld)
      return answer(request, response, models, callers);
    const release = (): void => {
      clearTimeout(timer);
      held.delete(release);
      if (!response.destroyed) server.emit("request", request, response);
    };
    const timer = setTimeout(() => {
      held.delete(release);
      answer(request, response, models, callers);
    }, holdMs);
    held.add(release);
  };
  server.on("request", early);
  server.listen(path === undefined ? { host: settings.host, port: settings.port, backlog } : { path, backlog });
  const listening = once(server, "listening");
  const url = path === undefined ? await urlOnce(listening, server, settings) : (await listening, path);
  return {
    url,
    open() {
      server.off("request", early);
      for (const listener of ofApp) server.on("request", listener);
      for (const release of held) release();
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const pathOf = ({ url = "" }: IncomingMessage): string => url.split("?", 1)[0]!;
const isAboutHealth = (request: IncomingMessage): boolean => healthPaths.has(pathOf(request));

function answer(request: IncomingMessage, response: ServerResponse, models: readonly string[], callers: Callers): void {
  const path = pathOf(request);
  const id = requestId(request);
  response.setHeader("x-request-id", id);
  // A client reads the answer only after it has sent its body.
  request.resume();
  if (path === "/livez") return send(response, 200, json, JSON.stringify({ status: "ok" }));
  if (path === "/v2/health/live") return send(response, 200, json, JSON.stringify({ live: true }));
  if (path === "/v2/health/ready") return send(response, 503, json, JSON.stringify({ ready: false }));
  if (path === "/.well-known/live") return send(response, 204, undefined, "");
  if (path === "/.well-known/ready") return send(response, 503, undefined, "");
  if (path === "/api/version") return send(response, 200, json, JSON.stringify({ version: packageVersion() }));
  if (path === "/readyz" || path === "/health") {
    const list = models.map((name) => ({ name, state: "loading" }));
    return send(response, 503, json, JSON.stringify({ status: "warming", models: list }));
  }
  if (path === "/v1/models" && mayAsk(request, callers)) {
    const data = models.map((name) => ({ ...modelHead(name), state: "loading" }));
    return send(response, 200, json, JSON.stringify({ object: "list", data }));
  }
  const problem = new Problem("NOT_READY", "The server is starting; see /readyz.");
  const { type, body } = errorDocument(problem, errorFormOf(path), id);
  send(response, 503, type, body);
}

function mayAsk({ headers }: IncomingMessage, callers: Callers): boolean {
  try {
    callers.identify((name) => headers[name]);
    return true;
  } catch {
    return false;
  }
}

const json = "application/json; charset=utf-8";

function send(response: ServerResponse, status: number, type: string | undefined, body: string): void {
  response.statusCode = status;
  if (type !== undefined) response.setHeader("content-type", type);
  // With a length, because not every probe reads a chunked body.
  if (status !== 204) response.setHeader("content-length", Buffer.byteLength(body));
  if (status === 503) response.setHeader("retry-after", "1");
  response.end(body);
}
