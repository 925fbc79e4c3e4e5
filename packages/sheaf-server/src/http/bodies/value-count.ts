import { Problem } from "../../problems/problem.ts";
import { endOfString, quote } from "./json-bounds.ts";

/** Smaller bodies are parsed within 20 ms, whatever they hold. */
export const largeBytes = 1_000_000;

/**
 * Refuses a large body that has more values than a valid one, before it is parsed: JSON.parse takes 0.1 s for 10 MB of
 * `0,` or `"a",`. Few bodies are counted: only those that have as many commas where a sample was taken.
 * @throws {Problem} 422
 */
export function checkValueCount(bytes: Buffer, most: number): void {
  // A value takes two bytes at least, with its comma.
  if (bytes.length < Math.max(largeBytes, 2 * most)) return;
  if (sampledCommas(bytes) <= most || !hasMoreValues(bytes, most)) return;
  throw new Problem("INVALID_INPUT", `The body must have at most ${most} values; no valid request here has more.`);
}

const samples = 64;
const sampleBytes = 64;

/** An estimate of the commas of a body, those of its texts too. At random places, so that nobody can keep them clear. */
function sampledCommas(bytes: Buffer): number {
  let commas = 0;
  for (let i = 0; i < samples; i++) {
    const from = Math.floor(Math.random() * (bytes.length - sampleBytes));
    for (let at = from; at < from + sampleBytes; at++) if (bytes[at] === comma) commas++;
  }
  return (commas * bytes.length) / (samples * sampleBytes);
}

/** Counts a value before each comma outside of texts, and one more, up to the first too many. */
function hasMoreValues(bytes: Buffer, most: number): boolean {
  let values = 1;
  for (let at = 0; at < bytes.length && values <= most; at++) {
    if (bytes[at] === quote) at = endOfString(bytes, at + 1);
    else if (bytes[at] === comma) values++;
  }
  return values > most;
}

const comma = 0x2c;
