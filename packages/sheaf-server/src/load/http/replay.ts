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
  /** Lines of headers with its priority and its deadline, where they are not the usual ones. */
  headerAt(index: number): Buffer;
}

/** `speed`: how many times as fast as they came. */
export function replayOf({ calls, settings }: Recording, speed: number): Replay {
  const arrivalsMs = calls.atMs.map((atMs) => atMs / speed);
  return {
    arrivalsMs,
    durationMs: Math.max(1, arrivalsMs.at(-1)!),
    lengths: calls.weight.every((weight) => weight === 1) ? undefined : calls.weight,
    headerAt(index) {
      const [priority, timeoutMs] = [priorities[calls.lane[index]!]!, calls.timeoutMs[index]!];
      const isOwn = timeoutMs > 0 && timeoutMs !== settings?.timeoutMs;
      const lines = [
        ...(priority === "interactive" ? [] : [renderHeader("x-sheaf-priority", priority)]),
        ...(isOwn ? [renderHeader("x-request-timeout-ms", String(timeoutMs))] : []),
      ];
      return Buffer.from(lines.join(""));
    },
  };
}
