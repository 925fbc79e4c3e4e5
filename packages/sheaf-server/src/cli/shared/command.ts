import { Command, CommanderError, InvalidArgumentError, type Option } from "commander";
import { UsageError } from "../../shared/failure.ts";
import type { CommandStreams } from "../../shared/terminal.ts";
import type { ReportFiles } from "../../load/report/write.ts";
import { ConfigError } from "../../settings/config.ts";

export const exitCode = { ok: 0, failure: 1, usage: 2, no: 3 } as const;

/** A command of `sheaf` that writes to these streams and throws instead of ending the process. */
export function newCommand(name: string, { stdout, stderr }: CommandStreams): Command {
  return new Command(`sheaf ${name}`)
    .exitOverride()
    .configureHelp({ optionDescription: describedWithDefault })
    .configureOutput({ writeOut: (text) => void stdout.write(text), writeErr: (text) => void stderr.write(text) })
    .showHelpAfterError(`Run sheaf ${name} --help for all options.`);
}

function describedWithDefault(option: Option): string {
  const shown = shownDefault(option);
  return shown === undefined ? option.description : `${option.description} (default: ${shown})`;
}

/** The default of a flag as a user would type it: `10s`, `1,2,4`; undefined if it has none. */
export function shownDefault({ defaultValue, flags }: Option): string | undefined {
  const isNone = defaultValue === undefined || (Array.isArray(defaultValue) && defaultValue.length === 0);
  if (isNone) return undefined;
  return flags.includes("<time>") ? shownDuration(defaultValue as number) : String(defaultValue);
}

const shownDuration = (ms: number): string => (ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`);

/** Takes the words after a command's name and returns the exit code: 0 ok, 1 failure, 2 usage, 3 verdict "no". */
export type RunCommand = (words: readonly string[], streams: CommandStreams) => Promise<number>;

/** Parses and runs a command. Every failure becomes a message on stderr and an exit code; otherwise the action returns the code. */
export const running =
  (
    define: (streams: CommandStreams) => Command,
    action: (command: Command, streams: CommandStreams, words: readonly string[]) => Promise<number>,
  ): RunCommand =>
  async (words, streams) => {
    const command = define(streams);
    let code: number = exitCode.ok;
    command.action(async () => void (code = await action(command, streams, words)));
    try {
      await command.parseAsync([...words], { from: "user" });
      return code;
    } catch (error) {
      return exitCodeOf(error, command.name(), streams);
    }
  };

function exitCodeOf(error: unknown, name: string, { stderr, signal }: CommandStreams): number {
  // commander has already written its message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.usage;
  if (signal?.aborted === true) {
    stderr.write(`\n${name}: interrupted.\n`);
    return exitCode.failure;
  }
  const isUsage = error instanceof UsageError || error instanceof ConfigError;
  stderr.write(`${name}: ${textOf(error)}\n`);
  return isUsage ? exitCode.usage : exitCode.failure;
}

/** The files that a measuring command can write beside its text. */
export interface OutputOptions extends ReportFiles {
  readonly json?: true;
}

export const withOutputs = (command: Command): Command =>
  command
    .option("--report <path>", "write an HTML report that opens offline (needs vega@5 and vega-lite@5)")
    .option("--svg <folder>", "write the charts of the report as SVG files")
    .option("--json", "print all results as JSON");

/** A bug of ours is shown with its stack; anything else as a sentence. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isBug = error instanceof TypeError || error instanceof ReferenceError;
  return isBug ? (error.stack ?? error.message) : error.message;
}

/** @throws {UsageError} that names the first of these options that is given, and why it cannot be. */
export function refuseGiven(command: Command, names: readonly string[], why: string): void {
  const given = command.options.find(
    (option) =>
      names.includes(option.attributeName()) && command.getOptionValueSource(option.attributeName()) === "cli",
  );
  if (given !== undefined) throw new UsageError(`${given.long} ${why}`);
}

/** `500ms`, `10s`, `2m` → milliseconds. */
export function parseDurationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text);
  const value = match === null ? NaN : Number(match[1]) * { ms: 1, s: 1000, m: 60_000 }[match[2] as "ms" | "s" | "m"];
  if (value >= 0 && value <= longestMs) return value;
  throw new InvalidArgumentError(`It must be a time such as 500ms, 10s or 2m.`);
}

/** A number from `min` to `max`, both included. */
export const numberFrom =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (text.trim() !== "" && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
  };

/** An integer from 1 to `max`. */
export const countUpTo =
  (max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`It must be an integer from 1 to ${max}.`);
  };

// Higher rates would only wait, or exceed what a clock can count.
export const maxPerS = 1_000_000;
export const longestMs = 86_400_000;
export const largestBatch = 65_536;
export const largestSeed: number = Number.MAX_SAFE_INTEGER;

/** A comma-separated list; `one` refuses a bad entry. */
export const listOf =
  <T>(one: (text: string) => T) =>
  (text: string): T[] => {
    const parts = text.split(",").map((part) => part.trim());
    if (parts.includes("")) throw new InvalidArgumentError("It must be a comma-separated list.");
    return [...new Set(parts)].map(one);
  };

export const oneOf =
  <T extends string>(choices: readonly T[]) =>
  (text: string): T => {
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    throw new InvalidArgumentError(`There are ${choices.join(", ")}.`);
  };

/** Collects an option that may be given several times. */
export const repeated = (text: string, earlier: readonly string[]): string[] => [...earlier, text];
