import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** The caller's `X-Request-Id`, if it is 1 to 128 visible ASCII characters; else a new one of 32 hex digits. */
export function requestId({ headers }: { readonly headers: IncomingMessage["headers"] }): string {
  const given = headers["x-request-id"];
  return typeof given === "string" && /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID().replaceAll("-", "");
}
