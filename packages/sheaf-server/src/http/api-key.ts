import { createHash, timingSafeEqual } from "node:crypto";
import { Problem } from "../problems/problem.ts";

export const digestOf = (key: string): Buffer => createHash("sha256").update(key).digest();

/**
 * Why a request with this `authorization` is refused; undefined where its key is the expected one. `place` says where keys
 * are sent. Compares digests, in
 * constant time: how long it takes says nothing about the key.
 */
export function refusalOf(
  authorization: string | undefined,
  expected: Buffer,
  place = "in the header",
): Problem | undefined {
  const given = /^Bearer +(.+)$/i.exec(authorization ?? "")?.[1];
  if (given !== undefined && timingSafeEqual(digestOf(given), expected)) return undefined;
  return new Problem(
    "UNAUTHORIZED",
    given === undefined ? `Send the key ${place} authorization: Bearer KEY.` : "The key is wrong.",
    { headers: { "www-authenticate": 'Bearer realm="sheaf"' } },
  );
}
