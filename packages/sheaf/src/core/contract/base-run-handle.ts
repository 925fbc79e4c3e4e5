import type { BatchContext, RunPart } from "./executor.ts";
import { newAbortController, type AbortSignalLike } from "../runtime/signals.ts";
import { check } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";

/**
 * The handle of a run that no batcher dispatched, and the part that a batcher's own handles share. Without a batcher,
 * reports about dispatch have no effect; a part of a run reports on the whole.
 */
export class BaseRunHandle implements RunPart {
  readonly batchId: number;
  readonly size: number;
  attempt: number = 1;
  isApart: boolean = false;
  /** As the executor measured it. */
  runMs: number | undefined;
  #signal: AbortSignal | undefined;
  #answered: Set<number> | undefined;
  #isOver = false;
  #whole: BaseRunHandle | undefined;
  #indices: readonly number[] | undefined;

  /** Without `signal` its signal never aborts. */
  constructor(batchId: number, size: number, signal?: AbortSignal) {
    this.batchId = batchId;
    this.size = size;
    this.#signal = signal;
  }

  get signal(): AbortSignal {
    return (this.#signal ??= this.#whole?.signal ?? newAbortController().signal);
  }

  pause(durationMs: number): void {
    this.#whole?.pause(durationMs);
  }

  /** Counts one more run, of so many items, on `rateLimit`. Default: all of them. */
  countRun(items: number = this.size): void {
    this.attempt++;
    this.#whole?.countRun(items);
  }

  reportWeight(weight: number): void {
    check(Number.isFinite(weight) && weight >= 0, "reportWeight: the weight", "a finite number >= 0", weight);
    this.#whole?.reportWeight(weight);
  }

  putBack(): void {
    this.#whole?.putBack();
  }

  /** The run as the executor measured it, start of run → results, without its own queueing. Default: from dispatch. */
  measured(runMs: number): void {
    this.runMs = runMs;
  }

  /** For an executor that `reportsStart`: the run begins now, again for each attempt. */
  started(): void {
    this.#whole?.started();
  }

  /** For the same executor: the run was cut short, by a crash of its worker, and waits to begin again. */
  stopped(): void {
    this.#whole?.stopped();
  }

  /**
   * For an executor that settles a run it gave up before the run has ended (a thread cannot be stopped): until `ended`
   * settles, the batch's orderKeys stay blocked.
   */
  runsUntil(ended: Promise<unknown>): void {
    this.#whole?.runsUntil(ended);
  }

  /**
   * Calls back with the reason when the signal aborts, and again past `runTimeoutMs`, or when a grace period ends, where it
   * had aborted before. Costs less than the signal, which is made when it is read. Returns a function that ends it.
   */
  onAborted(listener: (reason: unknown) => void): () => void {
    if (this.#whole !== undefined) return this.#whole.onAborted(listener);
    const signal = this.#signal as AbortSignalLike | undefined;
    const aborted = (): void => listener(signal!.reason);
    signal?.addEventListener("abort", aborted);
    return () => signal?.removeEventListener("abort", aborted);
  }

  get answer(): BatchContext["answer"] {
    return (index, result) => {
      if (!(Number.isInteger(index) && index >= 0 && index < this.size)) {
        throw new RangeError(`answer: index must be an integer, 0 to ${this.size - 1}, got ${describe(index)}`);
      }
      if (isPromiseLike(result)) throw new TypeError("answer: the result is a promise; await it first");
      if (!this.#isOver) this.deliver(index, result);
    };
  }

  /** The indices of the items that have no answer yet; undefined where none of the batch has one. */
  unanswered(): number[] | undefined {
    if ((this.#whole === undefined ? this.#answered : this.#whole.unanswered()) === undefined) return undefined;
    return Array.from({ length: this.size }, (_, index) => index).filter((index) => !this.isAnswered(index));
  }

  isAnswered(index: number): boolean {
    return this.#whole?.isAnswered(this.#indices![index]!) ?? this.#answered?.has(index) === true;
  }

  /** The run has ended: answers have no effect from now on. */
  end(): void {
    this.#isOver = true;
  }

  /** Does the work of `answer` while the run goes on, for the parts of a run too. Returns false where the item has an answer. */
  deliver(index: number, result: unknown): boolean {
    if (this.#whole !== undefined) return this.#whole.deliver(this.#indices![index]!, result);
    if (this.isAnswered(index)) return false;
    (this.#answered ??= new Set()).add(index);
    return true;
  }

  /** Reports on `whole` from now on, of which it runs these items, except how long it took. */
  protected isPartOf(whole: BaseRunHandle, indices: readonly number[]): this {
    this.#whole = whole;
    this.#indices = indices;
    this.attempt = whole.attempt;
    this.isApart = whole.isApart;
    return this;
  }

  /** The handle of a run of some of its items, such as half of a failed batch or a stage of a pipeline: by their indices. */
  part(indices: readonly number[]): BaseRunHandle {
    return new BaseRunHandle(this.batchId, indices.length).isPartOf(this, [...indices]);
  }
}

/** `context` itself, or a handle for someone who runs an executor by hand with a plain object. */
export const runHandleOf = (context: Pick<BatchContext, "batchId" | "size" | "signal">): BaseRunHandle =>
  context instanceof BaseRunHandle ? context : new BaseRunHandle(context.batchId, context.size, context.signal);

/** The same handle: its run, which has not begun, is apart from the others. */
export function apartHandle(handle: BatchContext): BaseRunHandle {
  const apart = runHandleOf(handle);
  apart.isApart = true;
  return apart;
}

export const isPromiseLike = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
