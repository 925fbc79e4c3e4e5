import type { Policy } from "../policies/policy.ts";
import { systemClock, type Clock } from "./clock.ts";
import type { BatchFunction, Executor } from "./executor.ts";
import { optionDefaults, type BatcherOptions, type CallOptions, type Priority, type RateLimit } from "./options.ts";
import type { Lane } from "./line.ts";
import type { AbortSignalLike } from "./runtime.ts";

/** Options after validation, with the defaults filled in. */
export interface Settings<In, Out> extends Omit<
  BatcherOptions<In, Out>,
  "maxBatchSize" | "maxWaitMs" | "concurrency" | "maxQueueSize" | "clock" | "name" | "policy"
> {
  readonly maxBatchSize: number;
  readonly maxWaitMs: number;
  readonly concurrency: number;
  /** Full batches beyond `concurrency` that the executor takes for each slot; none where the caller set `concurrency`. */
  readonly ahead: number;
  readonly maxQueueSize: number | "auto";
  readonly clock: Clock;
  readonly name: string;
  readonly policy: Policy;
}

const policiesInUse = new WeakSet<Policy>();

/** @throws {TypeError | RangeError} what is wrong, what is allowed, and what it got. */
export function settingsOf<In, Out>(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: BatcherOptions<In, Out>,
  defaultPolicy: () => Policy,
): Settings<In, Out> {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`options must be an object, got ${show(options)}`);
  }
  if (typeof run !== "function" && !isExecutor(run)) {
    throw new TypeError(
      `createBatcher needs a batch function or an executor { slots, ready, run, close }, got ${show(run)}`,
    );
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(knownOptions, name)) continue;
    throw new TypeError(`unknown option ${show(name)}; options are ${Object.keys(knownOptions).join(", ")}`);
  }
  for (const [name, check] of checks) {
    const value = options[name];
    if (value !== undefined) check(name, value);
  }
  checkTogether(options);

  const slots = typeof run === "function" ? optionDefaults.concurrency : run.slots;
  checkCount("the executor's slots", slots);
  // One by one: a spread takes as long as the rest of making a batcher, and some live for one request only.
  return {
    maxBatchSize: options.maxBatchSize ?? optionDefaults.maxBatchSize,
    maxWaitMs: options.maxWaitMs ?? Infinity,
    concurrency: options.concurrency ?? slots,
    ahead: typeof run === "function" || options.concurrency !== undefined ? 0 : (run.ahead ?? 0),
    maxQueueSize: options.maxQueueSize ?? optionDefaults.maxQueueSize,
    onQueueFull: options.onQueueFull,
    maxBatchWeight: options.maxBatchWeight,
    weigh: options.weigh,
    batchWeight: options.batchWeight,
    timeoutMs: options.timeoutMs,
    runTimeoutMs: options.runTimeoutMs,
    policy: options.policy === undefined ? defaultPolicy() : own(options.policy),
    onBatchError: options.onBatchError,
    runOne: options.runOne,
    shouldBisect: options.shouldBisect,
    maxBisectRuns: options.maxBisectRuns,
    groupKey: options.groupKey,
    orderKey: options.orderKey,
    dedupeKey: options.dedupeKey,
    dedupe: options.dedupe,
    resultKey: options.resultKey,
    onMissing: options.onMissing,
    rateLimit: options.rateLimit,
    cost: options.cost,
    name: options.name ?? optionDefaults.name,
    clock: options.clock ?? systemClock,
    signal: options.signal,
  } satisfies Required<Settings<In, Out>>;
}

/** @throws {TypeError} for a policy that another batcher has: it would see the arrivals of both. */
function own(policy: Policy): Policy {
  if (policiesInUse.has(policy)) {
    throw new TypeError(`policy ${show(policy.name)} belongs to another batcher already; make one for each batcher`);
  }
  policiesInUse.add(policy);
  return policy;
}

/** @throws {TypeError | RangeError} for options of one call. */
export function checkCallOptions({ signal, timeoutMs, priority, alone }: CallOptions): void {
  if (signal !== undefined) checkSignal("signal", signal);
  if (timeoutMs !== undefined) checkPositive("timeoutMs", timeoutMs);
  if (priority !== undefined) checkPriority("priority", priority);
  if (alone !== undefined && typeof alone !== "boolean") {
    throw new TypeError(`alone must be true or false, got ${show(alone)}`);
  }
}

export const laneOf = (priority: Priority | undefined): Lane =>
  priority === "immediate" ? 0 : priority === "bulk" ? 2 : 1;

type Check = (name: string, value: unknown) => void;

const knownOptions: Record<keyof BatcherOptions<unknown>, Check> = {
  maxBatchSize: checkCountOrInfinity,
  maxWaitMs: checkNotNegative,
  concurrency: checkCountOrInfinity,
  maxQueueSize: (name, value) => {
    if (value !== "auto") checkCountOrInfinity(name, value, ` or "auto"`);
  },
  onQueueFull: oneOf("reject", "wait"),
  maxBatchWeight: checkPositive,
  weigh: checkFunction,
  batchWeight: oneOf("sum", "padded"),
  timeoutMs: checkPositive,
  runTimeoutMs: checkPositive,
  policy: (name, value) => {
    if (typeof (value as Policy | null)?.decide !== "function") {
      throw new TypeError(`${name} must have a decide(view) method, got ${show(value)}`);
    }
  },
  onBatchError: oneOf("fail", "bisect"),
  runOne: checkFunction,
  shouldBisect: checkFunction,
  maxBisectRuns: (name, value) => {
    if (!Number.isInteger(value) || (value as number) < 0) {
      throw new RangeError(`${name} must be an integer >= 0, got ${show(value)}`);
    }
  },
  groupKey: checkFunction,
  orderKey: checkFunction,
  dedupeKey: checkFunction,
  dedupe: oneOf("waiting", "running"),
  resultKey: checkFunction,
  onMissing: oneOf("undefined", "error"),
  rateLimit: checkRateLimit,
  cost: (name, value) => {
    checkObject(name, value, ["perRun", "perItem", "perWeight"]);
    for (const [part, amount] of Object.entries(value as object)) {
      if (amount !== undefined) checkNotNegative(`${name}.${part}`, amount);
    }
  },
  name: (name, value) => {
    if (typeof value !== "string" || value === "") {
      throw new TypeError(`${name} must be a non-empty string, got ${show(value)}`);
    }
  },
  clock: (name, value) => {
    const { now, after } = (value ?? {}) as Partial<Clock>;
    if (typeof now !== "function" || typeof after !== "function") {
      throw new TypeError(`${name} must have now() and after(delayMs, callback), got ${show(value)}`);
    }
  },
  signal: checkSignal,
};

const checks = Object.entries(knownOptions) as [keyof BatcherOptions<unknown>, Check][];

function checkTogether<In, Out>(options: BatcherOptions<In, Out>): void {
  const { policy, maxWaitMs, maxBatchWeight, weigh, rateLimit, maxQueueSize, timeoutMs, onBatchError } = options;
  if (policy?.needsMaxWaitMs === true && maxWaitMs === undefined) {
    throw new RangeError(`policy ${show(policy.name)} needs maxWaitMs, the length of its window in milliseconds`);
  }
  if (maxBatchWeight !== undefined && weigh === undefined) {
    throw new RangeError("maxBatchWeight needs weigh(item), which gives the weight of an item");
  }
  if (rateLimit?.weight !== undefined && weigh === undefined) {
    throw new RangeError("rateLimit.weight needs weigh(item), which gives the weight of an item");
  }
  if (maxQueueSize === "auto" && timeoutMs === undefined) {
    throw new RangeError('maxQueueSize "auto" needs timeoutMs: the queue holds what can be answered within it');
  }
  if (options.dedupe === "running" && (options.dedupeKey === undefined || options.orderKey !== undefined)) {
    throw new RangeError('dedupe "running" needs dedupeKey, and no orderKey: a read could overtake a write of its key');
  }
  for (const option of ["runOne", "shouldBisect", "maxBisectRuns"] as const) {
    if (options[option] !== undefined && onBatchError !== "bisect") {
      throw new RangeError(`${option} has no effect without onBatchError: "bisect"`);
    }
  }
}

function checkRateLimit(name: string, value: unknown): void {
  checkObject(name, value, ["runs", "items", "weight", "perMs"]);
  const { runs, items, weight, perMs } = value as RateLimit;
  checkPositive(`${name}.perMs`, perMs);
  if (runs === undefined && items === undefined && weight === undefined) {
    throw new RangeError(`${name} needs at least one of runs, items and weight, got ${show(value)}`);
  }
  if (runs !== undefined) checkCount(`${name}.runs`, runs);
  if (items !== undefined) checkCount(`${name}.items`, items);
  if (weight !== undefined) checkPositive(`${name}.weight`, weight);
}

function checkCount(name: string, value: unknown): void {
  if (!Number.isInteger(value) || (value as number) < 1) {
    throw new RangeError(`${name} must be an integer >= 1, got ${show(value)}`);
  }
}

function checkCountOrInfinity(name: string, value: unknown, alternative: string = ""): void {
  if (value !== Infinity && (!Number.isInteger(value) || (value as number) < 1)) {
    throw new RangeError(`${name} must be an integer >= 1${alternative}, got ${show(value)}`);
  }
}

function checkPositive(name: string, value: unknown): void {
  if (typeof value !== "number" || !(value > 0)) {
    throw new RangeError(`${name} must be a number > 0, got ${show(value)}`);
  }
}

export function checkNotNegative(name: string, value: unknown): void {
  if (typeof value !== "number" || !(value >= 0)) {
    throw new RangeError(`${name} must be a number >= 0, got ${show(value)}`);
  }
}

function checkFunction(name: string, value: unknown): void {
  if (typeof value !== "function") throw new TypeError(`${name} must be a function, got ${show(value)}`);
}

function checkObject(name: string, value: unknown, keys: readonly string[]): void {
  if (typeof value !== "object" || value === null) {
    throw new TypeError(`${name} must be an object, got ${show(value)}`);
  }
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw new TypeError(`${name} has no ${show(unknown)}; it takes ${keys.join(", ")}`);
  }
}

function checkSignal(name: string, value: unknown): void {
  const signal = value as Partial<AbortSignalLike> | null;
  if (typeof signal !== "object" || signal === null || typeof signal.addEventListener !== "function") {
    throw new TypeError(`${name} must be an AbortSignal, got ${show(value)}`);
  }
}

function checkPriority(name: string, value: unknown): void {
  oneOf("immediate", "interactive", "bulk")(name, value);
}

function oneOf(...allowed: readonly string[]): Check {
  const list = allowed.map((word) => `"${word}"`).join(" or ");
  return (name, value) => {
    if (!allowed.includes(value as string)) throw new RangeError(`${name} must be ${list}, got ${show(value)}`);
  };
}

function isExecutor(value: unknown): boolean {
  const { ready, run, close } = (value ?? {}) as Partial<Executor<unknown, unknown>>;
  return typeof ready === "function" && typeof run === "function" && typeof close === "function";
}

/** As it would stand in the source: strings in quotes, so that "32" and 32 differ. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === "function") return `a function`;
  if (typeof value === "object" && value !== null) {
    const name = value.constructor?.name ?? "Object";
    return Array.isArray(value) ? `an array of ${value.length}` : `an object (${name})`;
  }
  return String(value);
}
