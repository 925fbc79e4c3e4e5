import type { RecordedSettings } from "../../shared/recorded-settings.ts";

/** A whole number of microseconds. */
type Us = number;

/**
 * One run with its calls, in the order of its items. In a fleet, some of its calls; a call that failed is one on its own there, for its
 * run is not known. A column is one value where all calls have the same, and is missing where that
 * is the default.
 */
export interface RunLine {
  readonly run: number;
  /** In a fleet, where `run` is the number of the run at this worker; it may have more lines, in the records of other gateways too. */
  readonly worker?: string;
  /** In a fleet: the items of all gateways in it. */
  readonly size?: number;
  readonly model: string;
  /** Dispatch, since the `origin` of the line before it that has one. */
  readonly at: Us;
  /** As measured by the executor. */
  readonly took: Us;
  /** Dispatch → results. */
  readonly held: Us;
  /** Arrival → dispatch of each call. */
  readonly waits: readonly Us[];
  /** 0 immediate, 1 interactive, 2 bulk. Default: 1. */
  readonly lane?: number | readonly number[];
  /** Numbers in order of appearance: no tenant's name. Default: none. */
  readonly tenant?: number | readonly number[];
  /** Default: 1. */
  readonly weight?: number | readonly number[];
  /** In milliseconds, whole ones. Default: none. */
  readonly timeout?: number | readonly number[];
  /** `error`, `partial`, or `refused`: a refused run lists no calls, because they run again. Default: `ok`. */
  readonly outcome?: string;
  /** Items that failed. */
  readonly failed?: number;
  /** Calls, by their place, whose deadline passed, or whose caller left, while the run went on. */
  readonly expired?: readonly number[];
  readonly aborted?: readonly number[];
  /** Calls that shared an item of an earlier one. */
  readonly shared?: number;
  /** It ran in parts, or again. */
  readonly again?: true;
}

/** One second in which there were runs: the settings at its end, and the calls that joined no run. */
export interface SecondLine {
  /** Version of the format. */
  readonly sheaf: 1;
  readonly model: string;
  /** Milliseconds since 1970 from which the moments of runs count; with the system's clock. */
  readonly origin: number;
  /**
   * From when until when it counts: seconds without runs go with the next one that has some. Between the end of one and the beginning
   * of the next, seconds were left out because there were too many calls.
   */
  readonly since: Us;
  readonly at: Us;
  readonly settings: RecordedSettings;
  /** Default of each: 0. */
  readonly refused?: number;
  readonly refusedBulk?: number;
  readonly expired?: number;
  readonly gaveUp?: number;
  readonly cached?: number;
}
