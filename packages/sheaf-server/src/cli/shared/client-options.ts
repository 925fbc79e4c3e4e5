import { InvalidArgumentError, type Command } from "commander";
import type { Retries } from "sheaf/internal/tuning";
import { UsageError } from "../../shared/failure.ts";
import { countUpTo, parseDurationMs, refuseGiven } from "./command.ts";

/** Adds a repeatable flag for the headers of every request to a URL. @throws {UsageError} for a line without a name. */
export const withHeaders = (command: Command): Command =>
  command.option("--header <name: value>", "request header for a URL; repeatable", header);

function header(line: string, earlier: Readonly<Record<string, string>> = {}): Record<string, string> {
  const colon = line.indexOf(":");
  if (colon < 1) throw new UsageError(`--header must be "name: value", got ${JSON.stringify(line)}`);
  return { ...earlier, [line.slice(0, colon).trim()]: line.slice(colon + 1).trim() };
}

/** Flags for clients that give up and retry. */
export interface ClientOptions {
  readonly patience?: readonly [number, number];
  readonly attempts: number;
  readonly obeyRetryAfter?: true;
}

export const withClients = (command: Command): Command =>
  command
    .option("--patience <time>", "time until clients give up and try again, or a range of it (1.5s-3s)", rangeMs)
    .option("--attempts <n>", "with --patience: attempts per client", countUpTo(100), 3)
    .option("--obey-retry-after", "with --patience: refused clients wait as long as Retry-After asks");

/** The clients that the flags describe; undefined without `--patience`. @throws {UsageError} for a flag that needs it. */
export function retriesOf(command: Command): Retries | undefined {
  const { patience, attempts, obeyRetryAfter = false } = command.opts<ClientOptions>();
  if (patience !== undefined) {
    return { patienceMs: patience, attempts, obeyRetryAfter };
  }
  refuseGiven(command, ["attempts", "obeyRetryAfter"], "needs --patience.");
  return undefined;
}

/** `1s` or `1.5s-3s` → least and most milliseconds. */
function rangeMs(text: string): readonly [number, number] {
  const [least, most = least, ...rest] = text.split("-").map(parseDurationMs);
  if (least !== undefined && least > 0 && most! >= least && rest.length === 0) return [least, most!];
  throw new InvalidArgumentError("It must be a time above 0, such as 1s, or a range such as 1.5s-3s.");
}
