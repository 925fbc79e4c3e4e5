import { checkCount, checkFunction, checkOptions, checkPositive, oneOf } from "../../shared/checks.ts";
import { notNegative, positive } from "../traffic/checks.ts";

/** Workers that come and go, as Kubernetes' autoscaler adds and removes them by one metric. */
export interface Scaling {
  /**
   * - `"slots-needed"`: `stats().slotsNeeded` of the batcher ÷ the slots of a worker ÷ target;
   * - `"queue"`: waiting items ÷ target;
   * - `"cpu"`: workers × the share of their slots' time that runs take ÷ target;
   * - `"schedule"`: as many as `schedule` says.
   */
  readonly by: "slots-needed" | "queue" | "cpu" | "schedule";
  /**
   * > 0; see `by`.
   * @default 1 for "slots-needed", 10 items for "queue", 0.7 for "cpu"
   * @see by
   */
  readonly target?: number | undefined;
  /**
   * Workers at a moment in milliseconds; needed with `by: "schedule"`.
   * @default none
   */
  readonly schedule?: ((atMs: number) => number) | undefined;
  /**
   * From the decision until a new worker takes batches, in milliseconds; >= 0.
   * @default 30000
   */
  readonly startUpMs?: number | undefined;
  /**
   * Time between two decisions, in milliseconds; > 0.
   * @default 15000
   */
  readonly everyMs?: number | undefined;
  /**
   * A worker is removed once no decision has asked for it for this long, in milliseconds; >= 0.
   * @default 300000
   */
  readonly downAfterMs?: number | undefined;
  /**
   * Fewest workers, also the number at the start; integer >= 1.
   * @default 1
   */
  readonly minWorkers?: number | undefined;
  /**
   * Most workers; integer >= minWorkers.
   * @default 100
   * @see minWorkers
   */
  readonly maxWorkers?: number | undefined;
  /**
   * Concurrent batches of one worker; integer >= 1.
   * @default 1
   */
  readonly slotsPerWorker?: number | undefined;
}

export interface SimulatedWorkers {
  /** Seconds of all workers together, from the decision to start each until its end. */
  readonly workerSeconds: number;
  /** `[atMs, workers]`: the workers, those being started included, from each change on. */
  readonly changes: readonly (readonly [atMs: number, workers: number])[];
}

/** `Scaling` with the defaults filled in. */
export type ScalingSettings = {
  readonly [Name in Exclude<keyof Scaling, "schedule">]-?: NonNullable<Scaling[Name]>;
} & Pick<Scaling, "schedule">;

const defaultTargets = { "slots-needed": 1, queue: 10, cpu: 0.7, schedule: 1 };

const checks = {
  by: oneOf("slots-needed", "queue", "cpu", "schedule"),
  target: checkPositive,
  schedule: checkFunction,
  startUpMs: notNegative,
  everyMs: positive,
  downAfterMs: notNegative,
  minWorkers: checkCount,
  maxWorkers: checkCount,
  slotsPerWorker: checkCount,
};

/** @throws {TypeError | RangeError} for a way to scale that makes no sense. */
export function scalingSettings(scaling: Scaling): ScalingSettings {
  checkOptions(scaling, checks, "scaling");
  const { by, schedule, startUpMs = 30_000, everyMs = 15_000, downAfterMs = 300_000 } = scaling;
  const { minWorkers = 1, maxWorkers = Math.max(100, minWorkers), slotsPerWorker = 1 } = scaling;
  checks.by("scaling.by", by);
  if (by === "schedule") checkFunction("scaling.schedule", schedule);
  if (maxWorkers < minWorkers)
    throw new RangeError(`scaling.maxWorkers must be at least minWorkers (${minWorkers}), got ${maxWorkers}`);
  const target = scaling.target ?? defaultTargets[by];
  return { by, target, schedule, startUpMs, everyMs, downAfterMs, minWorkers, maxWorkers, slotsPerWorker };
}
