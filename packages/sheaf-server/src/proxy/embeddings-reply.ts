import { costs } from "../shared/costs.ts";
import { Problem } from "../problems/problem.ts";
import { isTooDeep } from "./too-deep.ts";

/** Bounds the fields beside `data`, because every caller of the request gets a copy. */
const longestEnvelope = 65_536;

/**
 * Checks that every caller's part of an upstream's reply can be passed on unchanged. The code that divides it counts and matches the
 * vectors.
 * @throws {Problem} `UPSTREAM_ERROR` naming the fault.
 */
export function embeddingsReply(reply: unknown): unknown {
  if (typeof reply !== "object" || reply === null) throw wrong("is not an object");
  const { data, ...envelope } = reply as Readonly<Record<string, unknown>>;
  if (!Array.isArray(data)) throw wrong("has no data array");
  for (const [index, entry] of (data as unknown[]).entries()) {
    const { embedding } = (entry ?? {}) as { readonly embedding?: unknown };
    if (embedding === undefined || embedding === null) throw wrong(`has no embedding at data[${index}]`);
    if (typeof embedding !== "object") continue;
    const notFinite = Array.isArray(embedding) ? embedding.find((number) => !Number.isFinite(number)) : embedding;
    // JSON cannot express it: callers would get null instead.
    if (typeof notFinite === "number") throw wrong(`has a number that is not finite in data[${index}].embedding`);
    if (notFinite !== undefined && isTooDeep(embedding)) throw wrong(tooDeep);
  }
  if (isTooDeep(envelope)) throw wrong(tooDeep);
  if (JSON.stringify(envelope).length > longestEnvelope)
    throw wrong(`has more than ${longestEnvelope} characters beside its data`);
  return reply;
}

const tooDeep = `is nested more than ${costs.jsonDepth} deep`;
const wrong = (what: string): Problem => new Problem("UPSTREAM_ERROR", `The upstream's reply ${what}.`);
