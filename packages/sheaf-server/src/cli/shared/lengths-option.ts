import type { Command } from "commander";
import type { Weights } from "sheaf/internal/tuning";
import { UsageError } from "../../shared/failure.ts";
import { textOf } from "./text-file.ts";

/** More than any text or prompt. */
const longest = 1_000_000;

export const withLengths = (command: Command, of: string): Command =>
  command.option(
    "--lengths <median,p99|file>",
    `${of}: lognormal with this median and 99th percentile, or a file with one number a line`,
  );

/** Lengths as `--lengths` gives them, in whole numbers from 1. @throws {UsageError} */
export async function lengthsOf(text: string): Promise<Weights> {
  const [median, p99, ...rest] = text.split(",").map(Number);
  if (median! >= 1 && p99! >= median! && p99! <= longest && rest.length === 0)
    return { pattern: "lognormal", median: median!, p99: p99!, max: longest };
  if (/^[\d.,\s]+$/.test(text))
    throw new UsageError(`--lengths ${text} must be a median >= 1 and a p99 >= the median, at most ${longest}.`);
  const weights = (await textOf("--lengths", text))
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(Number);
  if (weights.length > 0 && weights.every((length) => Number.isInteger(length) && length >= 1 && length <= longest))
    return { pattern: "trace", weights };
  throw new UsageError(`--lengths ${text} must hold an integer from 1 to ${longest} on each line.`);
}
