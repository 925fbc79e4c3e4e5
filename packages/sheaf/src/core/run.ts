import type { Chunk } from "./chunk.ts";
import type { BatchContext } from "./executor.ts";
import { BatcherError } from "./errors.ts";
import { newAbortController } from "./runtime.ts";
import type { DispatchReason } from "../policies/policy.ts";

/** What a run may tell by itself, before it has an outcome. */
export interface RunEvents {
  /** It wants nothing dispatched for so many milliseconds. */
  paused(durationMs: number): void;
  /** It asks its service again, for so many items. */
  retried(items: number, weight: number): void;
}

/** One batch in flight, and the context that its batch function sees. */
export class Run<In> implements BatchContext {
  readonly batchId: number;
  readonly size: number;
  readonly weight: number;
  attempt = 1;
  runMs: number | undefined = undefined;
  stillRuns: Promise<unknown> | undefined = undefined;
  started: (() => void) | undefined = undefined;
  stopped: (() => void) | undefined = undefined;
  givenUp: ((error: Error) => void) | undefined = undefined;
  readonly calls: Chunk<In>;
  readonly reason: DispatchReason;
  readonly group: unknown;
  readonly startedAtMs: number;
  /** Its index among the runs in flight. */
  place = 0;
  /** Past runTimeoutMs: its callers have their error, and its slot has gone to others. */
  abandoned = false;
  readonly #told: RunEvents;
  #controller: { readonly signal: AbortSignal; abort(reason?: unknown): void } | undefined = undefined;
  #aborted: { readonly reason: unknown } | undefined = undefined;

  constructor(
    batchId: number,
    calls: Chunk<In>,
    weight: number,
    reason: DispatchReason,
    group: unknown,
    startedAtMs: number,
    told: RunEvents,
  ) {
    this.batchId = batchId;
    this.size = calls.count;
    this.weight = weight;
    this.calls = calls;
    this.reason = reason;
    this.group = group;
    this.startedAtMs = startedAtMs;
    this.#told = told;
  }

  pause(durationMs: number): void {
    this.#told.paused(durationMs);
  }

  countRun(): void {
    this.#told.retried(this.size, this.weight);
  }

  /** Made when the batch function asks for it: most never do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = newAbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  abandonedByAll(): void {
    this.abort(new BatcherError("CLOSED", "Every caller of this batch has gone."));
  }

  get isAborted(): boolean {
    return this.#aborted !== undefined;
  }

  abort(reason: unknown): void {
    this.#aborted ??= { reason };
    this.#controller?.abort(reason);
  }
}
