import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Scheduler } from "../dispatch/scheduler.ts";
import type { Admission } from "../queue/admission.ts";
import type { Queue } from "../queue/queue.ts";
import type { Settings } from "../contract/settings.ts";
import { BatcherError } from "../contract/errors.ts";
import type { Executor } from "../contract/executor.ts";

export interface Lifecycle {
  flush(): Promise<void>;
  drain(): Promise<void>;
  close(graceMs?: number): Promise<void>;
  /** Resolves when batches can run; rejects with the reason if they never will, or may not for now. */
  ready(): Promise<void>;
}

/** When a batcher starts to run batches, flushes and drains, and how it closes. `isReady`: of an executor; a batch function is at once. */
export function lifecycleOf<In, Out>(
  { clock, name }: Settings<In, Out>,
  queue: Queue<In>,
  admission: Admission<In>,
  dispatcher: Dispatcher<In, Out>,
  scheduler: Scheduler<In, Out>,
  executor: Pick<Executor<In, Out>, "close"> | undefined,
  isReady: Promise<void> | undefined,
): Lifecycle {
  const { epochs } = queue;
  let closing: Promise<void> | undefined;
  const closedError = (message: string): BatcherError => new BatcherError("CLOSED", `${name}: ${message}`);

  const flush = (): Promise<void> => {
    if (queue.size === 0 && !admission.hasWaiters) return Promise.resolve();
    const epoch = epochs.separate();
    queue.relabel(epoch);
    admission.relabel(epoch);
    scheduler.wake();
    return epochs.settlement(epoch, false);
  };

  const drain = (): Promise<void> => {
    const epoch = epochs.seal();
    queue.release("drain");
    scheduler.wake();
    return epochs.settlement(epoch, true);
  };

  const finish = async (): Promise<void> => {
    await drain();
    await dispatcher.answeringRunsEnded();
    scheduler.stop();
    await executor?.close();
    dispatcher.stopTimers();
  };

  const close = (graceMs: number = Infinity): Promise<void> => {
    admission.close(closedError("closed."));
    closing ??= finish();
    if (graceMs === Infinity) return closing;
    const cancel = clock.after(graceMs, () => {
      const error = closedError(`closed; the call was cut off after ${graceMs} ms (graceMs).`);
      admission.rejectAll(error);
      dispatcher.cutOff(error);
    });
    closing.then(cancel, cancel);
    return closing;
  };

  if (isReady === undefined) dispatcher.open();
  isReady?.then(
    () => {
      dispatcher.open();
      scheduler.wake();
    },
    (error: unknown) => {
      admission.close(error);
      admission.rejectAll(error);
    },
  );
  const ready = (): Promise<void> =>
    admission.refusal?.isPassing === true ? Promise.reject(admission.refusal.error) : (isReady ?? Promise.resolve());
  return { flush, drain, close, ready };
}
