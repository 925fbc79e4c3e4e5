import { isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { Problem } from "../problems/problem.ts";
import type { Settings } from "../settings/settings.ts";
import { needsKey } from "../tenants/callers.ts";
import { sendProblem } from "./replies.ts";

type HostSettings = Pick<Settings, "host" | "allowedHosts" | "apiKey"> & Partial<Pick<Settings, "apiKeysFile">>;

/** Returns why a request to this host (a `Host` header or `:authority`) is refused; undefined if it is allowed. */
export type HostCheck = (host: string | undefined) => Problem | undefined;

/**
 * Protects against DNS rebinding: a foreign page can make its own name resolve to this machine and use the server, but its requests
 * still name the page's host. Undefined if every host is allowed, that is on non-loopback addresses without ALLOWED_HOSTS.
 */
export function hostCheck({ host, allowedHosts }: HostSettings): HostCheck | undefined {
  const isLocal = isLoopback(host);
  if ((!isLocal && allowedHosts.length === 0) || allowedHosts.includes("*")) return undefined;
  const allowed = new Set(allowedHosts.map((name) => name.toLowerCase()));
  return (given) => {
    // Browsers always name the host.
    if (given === undefined) return undefined;
    const full = given.toLowerCase();
    const name = nameOf(full);
    if (isLoopback(name) || allowed.has(name) || allowed.has(full)) return undefined;
    // An IP address cannot be rebound.
    if (!isLocal && isIP(name) !== 0) return undefined;
    const message = `This server does not answer as ${JSON.stringify(given.slice(0, 100))}; its operator can allow that with ALLOWED_HOSTS.`;
    return new Problem("WRONG_HOST", message);
  };
}

/** Refuses requests to other hosts with 421, on every route. */
export function checkHosts(app: FastifyInstance, settings: Settings): void {
  const check = hostCheck(settings);
  if (check === undefined) return;
  app.addHook("onRequest", (request, reply, done) => {
    const refused = check(request.headers.host);
    if (refused === undefined) return done();
    reply.header("x-request-id", request.id);
    sendProblem(reply, refused);
  });
}

/** The warning for a server that any page may use; undefined if none is needed. */
export function hostWarning(settings: HostSettings): string | undefined {
  if (needsKey(settings) || isLoopback(settings.host) || settings.allowedHosts.length > 0) return undefined;
  return "The server answers every Host and has no API_KEY: set ALLOWED_HOSTS to the server's names.";
}

/** Without port, brackets and the last dot. */
const nameOf = (host: string): string => /^\[?(.*?)\]?(?::\d*)?$/.exec(host)![1]!.replace(/\.$/, "");

const isLoopback = (name: string): boolean =>
  name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
