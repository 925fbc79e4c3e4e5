import { BatcherError } from "sheaf";
import { AbortListeners, mapOver } from "sheaf/internal";
import type { Served } from "../../cache/served.ts";
import type { InferOptions } from "../../http/call-options.ts";
import type { ServedModel } from "../models/served-model.ts";

const aborts = new AbortListeners();

/**
 * Runs a list that is longer than its queue. Its items enter as earlier ones leave and fill at most half of the queue, so that single
 * requests find room. The first failure, in order, ends the list: later items fail with the same error.
 * @throws {BatcherError} `QUEUE_FULL` if the first item finds no room; any other error of the first item.
 */
export async function inferLongList(
  model: ServedModel,
  items: readonly unknown[],
  options: InferOptions & { readonly timeoutMs: number },
): Promise<PromiseSettledResult<Served>[]> {
  const { queueMaxSize } = model.settings;
  const deadlineAtMs = performance.now() + options.timeoutMs;
  let hasFirst = false;
  const infer = async (item: unknown, { signal }: InferOptions): Promise<Served> => {
    const isFirst = !hasFirst;
    hasFirst = true;
    for (;;) {
      signal?.throwIfAborted();
      const timeoutMs = deadlineAtMs - performance.now();
      if (timeoutMs <= 0) throw new BatcherError("TIMEOUT", "", { timeoutMs: options.timeoutMs, waiting: true });
      try {
        return await model.infer(item, { ...options, signal, timeoutMs });
      } catch (error) {
        if (isFirst || !isFull(error)) throw ofWhole(error);
        await nextBatch(model, signal, timeoutMs);
      }
    }
  };
  // An item's timeout is what is left of the whole list's.
  const ofWhole = (error: unknown): unknown =>
    error instanceof BatcherError && error.details["timeoutMs"] !== undefined
      ? new BatcherError(error.code, error.message, { ...error.details, timeoutMs: options.timeoutMs })
      : error;
  const outcomes: PromiseSettledResult<Served>[] = [];
  const release = model.hold();
  try {
    const results = mapOver(items, options, {
      window: Math.max(1, Math.floor(queueMaxSize / 2)),
      aborts,
      hasRoom: () => {
        const { queued, bulk } = model.batcher.pending;
        return (options.priority === "bulk" ? bulk : queued - bulk) < queueMaxSize;
      },
      call: infer,
    });
    for await (const value of results) outcomes.push({ status: "fulfilled", value });
  } catch (reason) {
    if (outcomes.length === 0) throw reason;
    while (outcomes.length < items.length) outcomes.push({ status: "rejected", reason });
  } finally {
    release();
  }
  return outcomes;
}

/** Whether there is no room now, as opposed to a result that would come too late. */
const isFull = (error: unknown): boolean =>
  error instanceof BatcherError && error.code === "QUEUE_FULL" && error.details["expectedMs"] === undefined;

/** Resolves when a batch of the model has ended, the caller has gone, or `timeoutMs` have passed. */
function nextBatch(model: ServedModel, signal: InferOptions["signal"], timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      unsubscribe();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, timeoutMs);
    const unsubscribe = model.subscribe(end);
    signal?.addEventListener("abort", end, { once: true });
  });
}
