import type { Lane } from "./chunk.ts";
import type { AbortSignalLike } from "../runtime/globals.ts";

/** An item with what the key functions said of it, asked once. */
export interface Arrival<In> {
  readonly item: In;
  readonly weight: number;
  readonly group: unknown;
  readonly orderKey: unknown;
  readonly dedupeKey: unknown;
}

/** How the callers of an item or a list wait. */
export interface Terms {
  readonly lane: Lane;
  readonly signal: AbortSignalLike | undefined;
  /** `Infinity` without a timeout. */
  readonly deadlineMs: number;
  readonly arrivedAtMs: number;
  readonly tag: unknown;
  readonly alone: boolean;
}
