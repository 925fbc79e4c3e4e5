import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import type { Clock } from "../../core/runtime/runtime.ts";
import { checkClock } from "../../core/contract/settings.ts";
import {
  check,
  checkCount,
  checkCountOrInfinity,
  checkOptions,
  checkPositive,
  checkSpan,
  checkText,
  isInteger,
  oneOf,
  type Check,
} from "../../shared/checks.ts";
import { defined, type Given } from "../../shared/defined.ts";
import { describe } from "../../shared/describe.ts";

/** Options of `workerThread` and `workerProcess`. Validated once, at the call. */
export interface WorkerOptions<Data = unknown> {
  /**
   * Copies of the model, each in its own thread or process; integer >= 1.
   * @default 1
   */
  readonly instances?: number | undefined;
  /**
   * Handed to `load`; anything that structured clone takes.
   * @default none
   */
  readonly data?: Data | undefined;
  /**
   * Names the workers in errors.
   * @default the file name of the worker module
   */
  readonly name?: string | undefined;
  /**
   * Batches handed to a busy instance early, to hide its wake-up: 0 or 1.
   * @default 1
   */
  readonly prefetch?: 0 | 1 | undefined;
  /**
   * An instance is replaced after this many batches, once its successor is ready; integer >= 1.
   * @default none
   */
  readonly recycleAfterBatches?: number | undefined;
  /**
   * An instance that holds more is replaced, once its successor is ready: resident memory of a process; JavaScript
   * heap and buffers of a thread (native memory cannot be told apart there). Each serves 10 s at least.
   * Megabytes > 0.
   * @default none
   */
  readonly maxMemoryMb?: number | undefined;
  /**
   * Limit of the JavaScript heap of an instance, past which it crashes. Megabytes > 0.
   * @default the runtime's
   */
  readonly heapLimitMb?: number | undefined;
  /**
   * How far the workers' scheduling priority is lowered, so that a busy model does not slow the thread that answers:
   * integer 0 … 19. Threads: on Linux only, where a thread has a priority of its own.
   * @default 10
   */
  readonly niceness?: number | undefined;
  /**
   * Typed arrays among the results. `"own"`: each has memory of its own, to keep, change or transfer. `"view"`:
   * windows into one buffer of the whole batch; saves about a microsecond a row, for a caller that reads its result
   * and drops it. Keeping one then keeps the batch's memory, and transferring one takes the others'. Rows of 64 KiB
   * and up always have their own.
   * @default "own"
   */
  readonly resultRows?: "own" | "view" | undefined;
  /**
   * How long an instance may load and warm up. Past it `ready()` rejects, or, of one that is started again, it
   * counts as a crash. Milliseconds > 0, or Infinity.
   * @default 600000
   */
  readonly loadTimeoutMs?: number | undefined;
  /**
   * How long `close` waits for an instance to unload. Milliseconds > 0.
   * @default 10000
   */
  readonly closeTimeoutMs?: number | undefined;
  /** @default the system's */
  readonly clock?: Clock | undefined;
}

/** The further options that sheaf-server uses. */
export interface EncodingWorkerOptions<Data = unknown> extends WorkerOptions<Data> {
  /**
   * Has workers make bytes of each row of float32 among their results, such as its JSON, for a caller who would do
   * it next. `module` is the URL of a module that exports the members of a `RowEncoder`; `wanted` is asked for each
   * batch. The results stay as they are; `encodedRow(row)` gives the bytes of one.
   * @default none
   */
  readonly encodeRows?: EncodeRows | undefined;
  /**
   * A result that takes more bytes on its way from the worker is an error, and does not leave it. Its batch goes on.
   * @default none
   */
  readonly maxResultBytes?: number | undefined;
}

/** @see EncodingWorkerOptions.encodeRows */
export interface EncodeRows {
  readonly module: string | URL;
  /** @default always */
  readonly wanted?: (() => boolean) | undefined;
}

/** The options of a pool, for every kind of worker. */
export interface PoolSettings
  extends Required<Given<Omit<WorkerOptions, "data" | "heapLimitMb" | "clock">>>, Pick<WorkerOptions, "clock"> {}

const poolDefaults: Omit<PoolSettings, "name" | "clock"> = {
  instances: 1,
  prefetch: 1,
  recycleAfterBatches: Infinity,
  maxMemoryMb: Infinity,
  niceness: 10,
  resultRows: "own",
  loadTimeoutMs: 600_000,
  closeTimeoutMs: 10_000,
};

export interface WorkerSettings extends PoolSettings {
  readonly url: string;
  readonly data: unknown;
  readonly heapLimitMb: number | undefined;
  readonly rowEncoder: string | undefined;
  readonly wantsEncoded: (() => boolean) | undefined;
  readonly maxResultBytes: number;
}

export const poolChecks: Record<Exclude<keyof WorkerOptions, "heapLimitMb">, Check> = {
  instances: checkCount,
  data: () => undefined,
  name: checkText,
  prefetch: oneOf(0, 1),
  recycleAfterBatches: checkCountOrInfinity,
  maxMemoryMb: checkPositive,
  niceness: (name, value) => check(isInteger(value, 0, 19), name, "an integer from 0 to 19", value),
  resultRows: oneOf("own", "view"),
  loadTimeoutMs: checkPositive,
  closeTimeoutMs: checkSpan,
  clock: checkClock,
};

const workerChecks: Record<keyof EncodingWorkerOptions, Check> = {
  ...poolChecks,
  encodeRows: (name, value) =>
    check(typeof value === "object" && value !== null && "module" in value, name, "an object with a module", value),
  maxResultBytes: checkCountOrInfinity,
  heapLimitMb: (name, value) =>
    check(typeof value === "number" && value > 0 && value < Infinity, name, "a number of megabytes > 0", value),
};

/**
 * Checks the options and fills in the defaults.
 * @throws {TypeError | RangeError} naming the option and its value.
 */
export function workerSettings(url: string | URL, options: EncodingWorkerOptions): WorkerSettings {
  const moduleUrl = moduleUrlOf(url);
  checkOptions(options, workerChecks);
  const { data, heapLimitMb, encodeRows, maxResultBytes = Infinity } = options;
  const name = moduleUrl.slice(moduleUrl.lastIndexOf("/") + 1);
  return {
    ...poolSettings(options, name),
    url: moduleUrl,
    data,
    heapLimitMb,
    rowEncoder: encodeRows && moduleUrlOf(encodeRows.module),
    wantsEncoded: encodeRows && (encodeRows.wanted ?? (() => true)),
    maxResultBytes,
  };
}

export function poolSettings(options: WorkerOptions, name: string): PoolSettings {
  return { name, ...poolDefaults, ...defined(options) };
}

function moduleUrlOf(url: string | URL): string {
  if (url instanceof URL) return url.href;
  if (typeof url === "string") {
    if (isAbsolute(url)) return pathToFileURL(url).href;
    if (/^(file|data):/.test(url)) return url;
  }
  throw new TypeError(
    `url must be a URL, an absolute path or a file: URL, got ${describe(url)}. ` +
      'Beside the calling module: new URL("./model.js", import.meta.url).',
  );
}
