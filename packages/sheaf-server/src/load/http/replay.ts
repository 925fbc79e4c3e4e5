import { priorities } from "sheaf/internal/http";
import type { Recording } from "sheaf/internal/tuning";
import { renderHeader } from "./request.ts";

/** Recorded calls as load, a request each. */
export interface Replay {
  /** When each leaves, from the first one. */
  readonly arrivalsMs: Float64Array;
  readonly durationMs: number;
  /** Undefined if all have the weight of a call without one. */
  readonly lengths: Float64Array | undefined;
  /** The line of the header with its priority; empty for the usual one. */
  headerAt(index: number): Buffer;
}

/** `speed`: how many times as fast as they came. */
export function replayOf({ calls }: Recording, speed: number): Replay {
  const arrivalsMs = calls.atMs.map((atMs) => atMs / speed);
  const lines = priorities.map((priority) =>
    Buffer.from(priority === "interactive" ? "" : renderHeader("x-sheaf-priority", priority)),
  );
  return {
    arrivalsMs,
    durationMs: Math.max(1, arrivalsMs.at(-1)!),
    lengths: calls.weight.every((weight) => weight === 1) ? undefined : calls.weight,
    headerAt: (index) => lines[calls.lane[index]!]!,
  };
}
