import { BatcherError } from "sheaf";
import type { Served } from "../../cache/served.ts";
import type { InferOptions } from "../../http/call-options.ts";
import type { ServedModel } from "../models/served-model.ts";

/**
 * The outcomes of a list that is longer than its queue. It goes in piece by piece, as earlier ones leave, and never fills
 * more than half of the queue: single requests find room beside it. Its first piece decides whether it is let in at all. The
 * first failure ends it: items without an outcome of their own by then fail with the same error.
 * @throws {BatcherError} `QUEUE_FULL` where the first piece finds no room; any other error before the first outcome.
 */
export async function inferLongList(
  model: ServedModel,
  items: readonly unknown[],
  options: InferOptions & { readonly timeoutMs: number },
): Promise<PromiseSettledResult<Served>[]> {
  const pieceSize = Math.max(1, Math.floor(model.settings.queueMaxSize / 4));
  const deadlineAtMs = performance.now() + options.timeoutMs;
  const outcomes: PromiseSettledResult<Served>[] = [];
  let next = 0;
  let hasFailed = false;
  const feed = async (): Promise<void> => {
    while (next < items.length && !hasFailed) {
      const from = next;
      next += pieceSize;
      const ofPiece = await infer(items.slice(from, next), from === 0);
      let failure: PromiseRejectedResult | undefined;
      for (const [i, outcome] of ofPiece.entries()) {
        const own = outcome.status === "fulfilled" ? outcome : { ...outcome, reason: ofWhole(outcome.reason) };
        outcomes[from + i] = own;
        if (own.status === "rejected") failure ??= own;
      }
      if (failure !== undefined) throw failure.reason;
    }
  };
  const infer = async (piece: readonly unknown[], isFirst: boolean): Promise<PromiseSettledResult<Served>[]> => {
    for (;;) {
      options.signal?.throwIfAborted();
      const timeoutMs = deadlineAtMs - performance.now();
      if (timeoutMs <= 0) throw new BatcherError("TIMEOUT", "", { timeoutMs: options.timeoutMs, waiting: true });
      try {
        return await model.inferAll(piece, { ...options, timeoutMs });
      } catch (error) {
        if (isFirst || hasFailed || !isFull(error)) throw ofWhole(error);
        await nextBatch(model, options.signal, timeoutMs);
      }
    }
  };
  // A piece has the rest of the time; the caller gave the time of the whole.
  const ofWhole = (error: unknown): unknown =>
    error instanceof BatcherError && error.details["timeoutMs"] !== undefined
      ? new BatcherError(error.code, error.message, { ...error.details, timeoutMs: options.timeoutMs })
      : error;
  const release = model.hold();
  // Two pieces, so that one waits while the other runs.
  const feeding = [feed(), feed()];
  for (const one of feeding) one.catch(() => (hasFailed = true));
  try {
    await Promise.all(feeding);
  } catch (reason) {
    if (outcomes.length === 0) throw reason;
    for (let i = 0; i < items.length; i++) outcomes[i] ??= { status: "rejected", reason };
  } finally {
    release();
  }
  return outcomes;
}

/** There is no room now. A result that would come too late is refused for another reason. */
const isFull = (error: unknown): boolean =>
  error instanceof BatcherError && error.code === "QUEUE_FULL" && error.details["expectedMs"] === undefined;

/** Until a batch of the model has ended, the caller has gone, or `timeoutMs` have passed. */
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
