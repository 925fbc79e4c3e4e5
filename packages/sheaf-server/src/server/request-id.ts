import { randomFillSync } from "node:crypto";
import type { IncomingMessage } from "node:http";

const pool = new Uint8Array(16 * 256);
let used = pool.length;

/** The caller's `X-Request-Id`, if it is 1 to 128 visible ASCII characters; else a new one of 32 hex digits. */
export function requestId({ headers }: { readonly headers: IncomingMessage["headers"] }): string {
  const given = headers["x-request-id"];
  if (typeof given === "string" && /^[\x21-\x7e]{1,128}$/.test(given)) return given;
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += 16;
  return Buffer.from(pool.buffer, used - 16, 16).toString("hex");
}
