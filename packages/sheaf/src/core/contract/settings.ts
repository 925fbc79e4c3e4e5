import type { Policy } from "../../policies/policy.ts";
import {
  check,
  checkCount,
  checkCountOrInfinity,
  checkFunction,
  checkNames,
  checkNotNegative,
  checkOptions,
  checkPositive,
  checkText,
  hasMethods,
  integerFrom,
  checkShare,
  checkSpan,
  oneOf,
  withMethods,
  type Check,
} from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";
import { systemClock, type Clock } from "../runtime/runtime.ts";
import type { BatcherCapacity } from "./batcher.ts";
import type { BatchFunction, Executor } from "./executor.ts";
import { defaults, firstConcurrency, type BatcherOptions, type CallOptions, type Priority } from "./options.ts";
import type { RateLimit, SharedRateLimit } from "./rate-limit.ts";

/** Options after validation, with the defaults filled in. */
export interface Settings<In, Out> extends Omit<
  BatcherOptions<In, Out>,
  "maxBatchSize" | "maxWaitMs" | "concurrency" | "maxQueueSize" | "maxPauseMs" | "clock" | "name" | "policy"
> {
  readonly maxBatchSize: number;
  readonly maxWaitMs: number;
  /** How many batches may be in flight: its `limit` changes where the number is learned, or an executor gets or loses slots. */
  readonly slots: { readonly limit: number };
  /** Full batches beyond `concurrency` that the executor takes for each slot; none where the caller set `concurrency`. */
  readonly prefetch: number;
  readonly maxQueueSize: number | "auto";
  readonly maxPauseMs: number;
  readonly clock: Clock;
  readonly name: string;
  readonly policy: Policy;
}

const inUse = Symbol.for("sheaf.policiesInUse");
// One for the whole process: a program may load this package by `import` here and by `require` there.
const policiesInUse = ((globalThis as { [inUse]?: WeakSet<Policy> })[inUse] ??= new WeakSet<Policy>());

/** @throws {TypeError | RangeError} naming the wrong option, the allowed values, and the one it got. */
export function settingsOf<In, Out>(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: BatcherOptions<In, Out>,
  defaultPolicy: () => Policy,
  learned: { readonly limit: number } = { limit: firstConcurrency },
): Settings<In, Out> {
  if (typeof run !== "function" && !hasMethods(run, "ready", "run", "close")) {
    throw new TypeError(
      `createBatcher needs a batch function or an executor { slots, ready, run, close }, got ${describe(run)}`,
    );
  }
  checkOptions(options, batcherChecks);
  checkTogether(options);

  if (typeof run !== "function") checkCount("the executor's slots", run.slots);
  const { concurrency } = options;
  // One by one: a spread takes as long as the rest of making a batcher, and some live for one request only.
  return {
    maxBatchSize: options.maxBatchSize ?? defaults.maxBatchSize,
    maxWaitMs: options.maxWaitMs ?? Infinity,
    slots: concurrency !== undefined ? { limit: concurrency } : typeof run === "function" ? learned : slotsOf(run),
    prefetch: typeof run === "function" || concurrency !== undefined ? 0 : (run.prefetch ?? 0),
    maxQueueSize: options.maxQueueSize ?? defaults.maxQueueSize,
    onQueueFull: options.onQueueFull,
    overloadOrder: options.overloadOrder,
    maxBatchWeight: options.maxBatchWeight,
    maxItemWeight: options.maxItemWeight,
    weigh: options.weigh,
    batchWeight: options.batchWeight,
    timeoutMs: options.timeoutMs,
    refuseLate: options.refuseLate,
    runTimeoutMs: options.runTimeoutMs,
    policy: options.policy === undefined ? defaultPolicy() : own(options.policy),
    onBatchError: options.onBatchError ?? (typeof run !== "function" && run.runsApart === true ? "bisect" : undefined),
    runOne: options.runOne,
    shouldBisect: options.shouldBisect,
    maxBisectRuns: options.maxBisectRuns,
    groupKey: options.groupKey,
    fairKey: options.fairKey,
    shareOf: options.shareOf,
    orderKey: options.orderKey,
    dedupeKey: options.dedupeKey,
    dedupe: options.dedupe,
    resultKey: options.resultKey,
    onMissing: options.onMissing,
    rateLimit: options.rateLimit,
    maxPauseMs: options.maxPauseMs ?? defaults.maxPauseMs,
    price: options.price && { ...options.price },
    name: options.name ?? defaults.name,
    clock: options.clock ?? systemClock,
  } satisfies Required<Settings<In, Out>>;
}

const slotsOf = (executor: { readonly slots: number }): Settings<never, never>["slots"] => ({
  get limit() {
    return executor.slots;
  },
});

/** What a batcher can take at once, now. */
export const capacityOf = ({
  slots,
  maxBatchSize,
}: Pick<Settings<never, never>, "slots" | "maxBatchSize">): BatcherCapacity => ({
  maxBatchSize,
  concurrency: slots.limit,
});

/** @throws {TypeError} for a policy that another batcher has: it would see the arrivals of both. */
function own(policy: Policy): Policy {
  if (policiesInUse.has(policy)) {
    throw new TypeError(`policy ${describe(policy.name)} belongs to another batcher; make one for each`);
  }
  policiesInUse.add(policy);
  return policy;
}

/** @throws {TypeError | RangeError} for options of one call. */
export function checkCallOptions(options: CallOptions): void {
  for (const name in options) {
    const isRight = callChecks[name as keyof CallOptions];
    const value = options[name as keyof CallOptions];
    if (isRight === undefined) checkNames(options, callChecks);
    else if (value !== undefined) isRight(name, value);
  }
}

/** 0 immediate, 1 interactive, 2 bulk: lower goes first. */
export type Lane = 0 | 1 | 2;

/** Of every call, the highest first: by its place here one is a lane. */
export const priorities: readonly Priority[] = ["immediate", "interactive", "bulk"];

export const laneOf = (priority: Priority = "interactive"): Lane => priorities.indexOf(priority) as Lane;

export const checkClock: Check = withMethods("a clock, with now() and after(delayMs, callback)", "now", "after");

export const checkSignal: Check = withMethods("an AbortSignal", "addEventListener");

/** Without a prototype: every name that is not here is unknown. */
const callChecks: Readonly<Record<keyof CallOptions, Check | undefined>> = Object.assign(Object.create(null), {
  signal: checkSignal,
  timeoutMs: checkPositive,
  priority: oneOf(...priorities),
  alone: (name, value) => check(typeof value === "boolean", name, "true or false", value, TypeError),
  tag: () => undefined,
} satisfies Record<keyof CallOptions, Check>);

/** Of every option; an adapter adds its own. */
export const batcherChecks: Record<keyof BatcherOptions<unknown>, Check> = {
  maxBatchSize: checkCountOrInfinity,
  maxWaitMs: checkNotNegative,
  concurrency: (name, value) => checkCountOrInfinity(name, value, " (if it is left out, it is learned)"),
  maxQueueSize: (name, value) => {
    if (value !== "auto") checkCountOrInfinity(name, value, ` or "auto"`);
  },
  onQueueFull: oneOf("reject", "wait"),
  overloadOrder: oneOf("newest", "arrival"),
  maxBatchWeight: checkPositive,
  maxItemWeight: checkPositive,
  weigh: checkFunction,
  batchWeight: oneOf("sum", "padded", "apart"),
  timeoutMs: checkPositive,
  refuseLate: checkShare,
  runTimeoutMs: checkPositive,
  policy: withMethods("auto(), fixedWindow(), adaptive(), greedy() or an object with decide(view)", "decide"),
  onBatchError: oneOf("fail", "bisect"),
  runOne: checkFunction,
  shouldBisect: checkFunction,
  maxBisectRuns: integerFrom(0),
  groupKey: checkFunction,
  fairKey: checkFunction,
  shareOf: checkFunction,
  orderKey: checkFunction,
  dedupeKey: checkFunction,
  dedupe: oneOf("waiting", "running"),
  resultKey: checkFunction,
  onMissing: oneOf("undefined", "error"),
  rateLimit: checkRateLimit,
  maxPauseMs: checkSpan,
  price: (name, value) =>
    checkOptions(value, { perRun: checkNotNegative, perItem: checkNotNegative, perWeight: checkNotNegative }, name),
  name: checkText,
  clock: checkClock,
};

function checkTogether<In, Out>(options: BatcherOptions<In, Out>): void {
  const { policy, maxBatchWeight, maxItemWeight, rateLimit, maxQueueSize, dedupe, orderKey, onBatchError } = options;
  const needs = (what: string, isGiven: boolean, name: keyof typeof options): void => {
    if (isGiven && options[name] === undefined) throw new RangeError(`${what} needs ${name}`);
  };
  needs(`policy ${describe(policy?.name)}`, policy?.needsMaxWaitMs === true, "maxWaitMs");
  needs("maxBatchWeight", maxBatchWeight !== undefined, "weigh");
  needs("maxItemWeight", maxItemWeight !== undefined, "weigh");
  needs(
    "rateLimit.weight",
    !isShared(rateLimit) && limitsOf(rateLimit).some(({ weight }) => weight !== undefined),
    "weigh",
  );
  needs('maxQueueSize "auto"', maxQueueSize === "auto", "timeoutMs");
  needs("shareOf", options.shareOf !== undefined, "fairKey");
  needs('dedupe "running"', dedupe === "running", "dedupeKey");
  if (dedupe === "running" && orderKey !== undefined) {
    throw new RangeError('dedupe "running" excludes orderKey');
  }
  for (const option of ["runOne", "shouldBisect", "maxBisectRuns"] as const) {
    if (options[option] !== undefined && onBatchError !== "bisect") {
      throw new RangeError(`${option} needs onBatchError: "bisect"`);
    }
  }
}

/** Numbers that limit dispatch: one period's, or several. */
export type GivenLimits = RateLimit | readonly RateLimit[];

export const isShared = (limit: GivenLimits | SharedRateLimit | undefined): limit is SharedRateLimit =>
  !Array.isArray(limit) && hasMethods(limit, "join");

/** The limits that were given: one, several, or none. */
export function limitsOf(given: GivenLimits | undefined): readonly RateLimit[] {
  if (given === undefined) return [];
  return Array.isArray(given) ? (given as readonly RateLimit[]) : [given as RateLimit];
}

function checkRateLimit(name: string, value: unknown): void {
  if (!isShared(value as RateLimit)) checkGivenLimits(name, value);
}

/** @throws {TypeError | RangeError} unless they are numbers that limit dispatch. */
export function checkGivenLimits(name: string, value: unknown): void {
  if (!Array.isArray(value)) return checkGivenLimit(name, value);
  check(value.length > 0, name, "one limit or several", value);
  for (const [index, limit] of value.entries()) checkGivenLimit(`${name}[${index}]`, limit);
}

function checkGivenLimit(name: string, value: unknown): void {
  checkOptions(value, { runs: checkCount, items: checkCount, weight: checkPositive, perMs: checkPositive }, name);
  const { runs, items, weight, perMs } = value as RateLimit;
  checkPositive(`${name}.perMs`, perMs);
  check((runs ?? items ?? weight) !== undefined, name, "an object with runs, items or weight", value);
}
