import { randomFillSync } from "node:crypto";
import type { IncomingMessage } from "node:http";

const bytesOfId = 16;
const random = Buffer.alloc(256 * bytesOfId);
let used = random.length;

/** The caller's `X-Request-Id`, if it is 1 to 128 visible ASCII characters; else a new one of 32 hex digits. */
export function requestId({ headers }: Pick<IncomingMessage, "headers">): string {
  const given = headers["x-request-id"];
  if (typeof given === "string" && /^[\x21-\x7e]{1,128}$/.test(given)) return given;
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  return random.toString("hex", used, (used += bytesOfId));
}
