import type { AbortSignalLike } from "../runtime/globals.ts";
import type { Lane } from "../contract/settings.ts";
import type { Tenant } from "./tenants/tenants.ts";

/** An item with its keys, each computed once. */
export interface Arrival<In> {
  readonly item: In;
  readonly weight: number;
  readonly group: unknown;
  readonly orderKey: unknown;
  readonly dedupeKey: unknown;
  /** With `fairKey`. */
  readonly tenant: Tenant<In> | undefined;
}

/** How the caller of an item or a list waits. */
export interface Terms {
  readonly lane: Lane;
  readonly signal: AbortSignalLike | undefined;
  /** `Infinity` without a timeout. */
  readonly deadlineAtMs: number;
  readonly arrivedAtMs: number;
  readonly tag: unknown;
  readonly alone: boolean;
}
