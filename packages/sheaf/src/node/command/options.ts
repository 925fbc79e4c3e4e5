import { basename } from "node:path";
import { check, checkFunction, checkOptions, checkText, type Check } from "../../shared/checks.ts";
import { poolChecks, poolSettings, type PoolSettings, type WorkerOptions } from "../contract/options.ts";

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A line that a worker printed, or a message that it logged. */
export interface WorkerLogLine {
  /** Its output, on stdout or stderr, is `"info"`. */
  readonly level: "debug" | "info" | "warning" | "error";
  readonly text: string;
  readonly pid: number | undefined;
}

/** Options of `workerCommand`. Validated once, at the call. */
export interface CommandOptions<Data = unknown> extends Omit<WorkerOptions<Data>, "heapLimitMb"> {
  /** The program to start: a path, or a name that is looked up on PATH. */
  readonly command: string;
  /** @default none */
  readonly args?: readonly string[] | undefined;
  /**
   * Folder it starts in.
   * @default the folder of this process
   */
  readonly cwd?: string | undefined;
  /**
   * Environment variables to set for it beside those of this process; `undefined` takes one away.
   * @default that of this process alone
   */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /**
   * Handed to `load`; anything that JSON holds.
   * @default none
   */
  readonly data?: Data | undefined;
  /**
   * Names the workers in errors.
   * @default the file name of the first argument that is a file, else of the command
   */
  readonly name?: string | undefined;
  /**
   * Called with every line that a worker prints.
   * @default writes it to stderr, with the name before it
   */
  readonly log?: ((line: WorkerLogLine) => void) | undefined;
}

export interface CommandSettings extends PoolSettings, Command {
  readonly data: unknown;
  readonly log: (line: WorkerLogLine) => void;
}

const isText = (value: unknown): boolean => typeof value === "string";

const commandChecks: Record<keyof CommandOptions, Check> = {
  ...poolChecks,
  command: checkText,
  args: (name, value) =>
    check(Array.isArray(value) && value.every(isText), name, "an array of texts", value, TypeError),
  cwd: checkText,
  env: (name, value) =>
    check(
      typeof value === "object" &&
        value !== null &&
        Object.values(value).every((each) => each === undefined || isText(each)),
      name,
      "an object of texts",
      value,
      TypeError,
    ),
  data: checkJson,
  log: checkFunction,
};

/**
 * Checks the options and fills in the defaults.
 * @throws {TypeError | RangeError} naming the option and its value.
 */
export function commandSettings(options: CommandOptions): CommandSettings {
  checkOptions(options, commandChecks);
  checkText("command", options.command);
  const { command, args = [], cwd, env = {}, data } = options;
  const script = args.find((word) => /^[^-].*\.\w+$/.test(word)) ?? command;
  const settings = poolSettings(options, basename(script));
  const { log = ({ text }) => process.stderr.write(`${settings.name}: ${text}\n`) } = options;
  return { ...settings, command, args, cwd, env, data, log };
}

function checkJson(name: string, value: unknown): void {
  let isJson = false;
  try {
    isJson = JSON.stringify(value) !== undefined;
  } catch {
    // A BigInt, a circle, or a toJSON that throws.
  }
  check(isJson, name, "a JSON value", value, TypeError);
}
