import type { IncomingHttpHeaders } from "node:http";
import { Problem } from "../problems/problem.ts";
import type { Settings } from "../settings/settings.ts";
import type { UpstreamHeaders } from "./upstream.ts";

/**
 * Headers that do not say who asks or for what: those of the hop, the connection, tracing and the client's library. They are not
 * forwarded, and calls that differ in them may share a request. All others are forwarded and separate calls, because an unknown
 * header may be a key.
 */
const ownToEachRequest = new Set([
  "accept", "accept-charset", "accept-encoding", "accept-language", "baggage", "cache-control", "connection",
  "content-encoding", "content-length", "content-type", "date", "dnt", "expect", "forwarded", "host", "idempotency-key",
  "if-match", "if-none-match", "keep-alive", "origin", "pragma", "priority", "proxy-authenticate", "proxy-authorization",
  "proxy-connection", "referer", "te", "traceparent", "tracestate", "trailer", "transfer-encoding", "upgrade", "user-agent",
  "via", "x-request-id", "x-request-timeout-ms", "x-real-ip", "x-sheaf-priority",
]); // prettier-ignore
const ownPrefixes = ["sec-", "x-forwarded-", "x-stainless-"];

/** The settings that decide what the upstream learns about a caller. */
export type UpstreamSettings = Pick<Settings, "upstreamApiKey" | "tenantBy" | "tenantHeader">;

/**
 * A request's headers without those meant only for the proxy: a tenant's name, and a key of the proxy's own. The upstream's key is sent
 * in the header in which the caller has sent its own: Anthropic's clients use `x-api-key`.
 */
export function withoutCaller<T>(
  headers: Readonly<Record<string, T>>,
  { upstreamApiKey, tenantBy, tenantHeader }: UpstreamSettings,
): Record<string, T | string> {
  const passed: Record<string, T | string> = { ...headers };
  if (tenantBy === "header") delete passed[tenantHeader];
  if (upstreamApiKey === undefined) return passed;
  const isApiKey = headers["x-api-key"] !== undefined && headers["authorization"] === undefined;
  delete passed["x-api-key"];
  if (isApiKey) passed["x-api-key"] = upstreamApiKey;
  else passed["authorization"] = `Bearer ${upstreamApiKey}`;
  return passed;
}

/** Headers that say whose upstream limits a request counts towards. */
const keyHeaders = ["authorization", "api-key", "x-api-key", "x-goog-api-key", "openai-organization", "openai-project"];

/** The key among the headers for the upstream. With UPSTREAM_API_KEY there is only one key, whatever else a caller sends. */
export function keyOf(headers: UpstreamHeaders, { upstreamApiKey }: UpstreamSettings): readonly unknown[] {
  return upstreamApiKey === undefined ? keyHeaders.map((name) => headers[name]) : [];
}

/** Names of the headers that `Connection` marks as hop-by-hop. Split without a pattern for spaces, which would be quadratic. */
export const namedByConnection = (header: unknown): ReadonlySet<string> =>
  new Set(
    (typeof header === "string" ? header : "")
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );

/** Headers of one hop. `expect` has been answered here. */
const ofOneHop = [
  "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
  "transfer-encoding", "upgrade",
]; // prettier-ignore

/** Removes hop-by-hop headers: the upstream's `connection` must not close, or keep, the client's connection. */
export function withoutHop<T>(headers: Readonly<Record<string, T>>): Record<string, T> {
  const named = namedByConnection(headers["connection"]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ofOneHop.includes(name) && !named.has(name)));
}

/** The headers for the upstream, sorted by name: keys, organisation, project, and all unknown ones. */
export function upstreamHeaders(given: IncomingHttpHeaders, settings: UpstreamSettings): UpstreamHeaders {
  const headers: IncomingHttpHeaders = withoutCaller(given, settings);
  const named = namedByConnection(headers.connection);
  const sent = Object.entries(headers)
    .filter(([name]) => !ownToEachRequest.has(name) && !named.has(name))
    .filter(([name]) => !ownPrefixes.some((prefix) => name.startsWith(prefix)))
    .map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")] as const);
  return Object.fromEntries(sent.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The URL of a request: its path after the upstream's base. A prefix that both share appears once, so that `https://api.openai.com`
 * and `https://api.openai.com/v1` mean the same.
 * @throws {Problem} 400 for a path that leads out of the base: the caller's key belongs to the paths below it.
 */
export function upstreamUrl(base: string, pathAndQuery: string): string {
  const { origin, pathname } = new URL(base);
  const prefix = pathname.split("/").filter(Boolean);
  const [path, query] = splitOnce(pathAndQuery, "?");
  // With several leading slashes the path would resolve to another host.
  const segments = path.replace(/^\/+/, "").split("/");
  let common = Math.min(prefix.length, segments.length);
  while (common > 0 && !prefix.slice(-common).every((segment, i) => segment === segments[i])) common--;
  const joined = [...prefix, ...segments.slice(common)].join("/");
  // An upstream may decode an encoded slash.
  for (const read of [joined, joined.replaceAll(/%2f|%5c/gi, "/")])
    if (!isBelow(new URL(`${origin}/${read}`).pathname, prefix))
      throw new Problem("BAD_REQUEST", "The path leaves the upstream's base path.");
  return `${origin}/${joined}${query === undefined ? "" : `?${query}`}`;
}

const isBelow = (path: string, prefix: readonly string[]): boolean =>
  prefix.length === 0 || `${path}/`.startsWith(`/${prefix.join("/")}/`);

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
