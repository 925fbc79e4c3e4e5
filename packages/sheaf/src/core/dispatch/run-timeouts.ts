import { BatcherError } from "../contract/errors.ts";
import type { Settings } from "../contract/settings.ts";
import type { OrderKeys } from "../queue/order-keys.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { Run } from "./run.ts";

/** Gives up runs that take longer than `runTimeoutMs`. */
export class RunTimeouts<In> {
  /** Runs that were abandoned and have not ended. */
  abandonedNow = 0;
  abandonedRuns = 0;
  readonly #settings: Pick<Settings<In, never>, "clock" | "name">;
  readonly #runTimeoutMs: number;
  readonly #order: OrderKeys<In> | undefined;
  readonly #dispatcher: Pick<Dispatcher<In, never>, "failed" | "freed">;
  #isClosed = false;

  constructor(
    settings: Pick<Settings<In, never>, "clock" | "name">,
    runTimeoutMs: number,
    order: OrderKeys<In> | undefined,
    dispatcher: Pick<Dispatcher<In, never>, "failed" | "freed">,
  ) {
    this.#settings = settings;
    this.#runTimeoutMs = runTimeoutMs;
    this.#order = order;
    this.#dispatcher = dispatcher;
  }

  /** The batcher is closed: no run is timed any longer. */
  close(): void {
    this.#isClosed = true;
  }

  /** Rejects where it takes too long. With `reportsStart` the time begins when the executor says so. */
  attempt(run: Run<In>, reportsStart: boolean, begin: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let cancel: (() => void) | undefined;
      const stop = (): void => cancel?.();
      const start = (): void => {
        stop();
        if (!run.abandoned && !this.#isClosed)
          cancel = this.#settings.clock.after(this.#runTimeoutMs, () => reject(this.#giveUp(run)));
      };
      const ended = (): void => {
        stop();
        run.timer = run.stopTimer = undefined;
        if (run.abandoned) this.#endAbandoned(run);
      };
      run.stopTimer = stop;
      if (reportsStart) run.timer = { start, stop };
      else start();
      begin().then(
        (results) => {
          ended();
          resolve(results);
        },
        (error: unknown) => {
          // An abandoned run, too, may report that the service wants a pause.
          if (run.abandoned) this.#dispatcher.failed(error);
          ended();
          reject(error);
        },
      );
    });
  }

  #giveUp(run: Run<In>): BatcherError {
    const runTimeoutMs = this.#runTimeoutMs;
    const error = new BatcherError(
      "RUN_TIMEOUT",
      `${this.#settings.name}: a batch of ${run.size} items ran longer than ${runTimeoutMs} ms (runTimeoutMs) and was ` +
        "given up. Raise runTimeoutMs, lower maxBatchSize, or end the run when context.signal aborts.",
      { runTimeoutMs, size: run.size, batchId: run.batchId },
    );
    run.abandoned = true;
    // An abandoned run cannot be joined: an equal item starts a run of its own.
    for (const ref of run.calls.refs ?? []) ref?.leaveDedupe?.(ref);
    this.abandonedNow++;
    this.abandonedRuns++;
    run.abort(error);
    return error;
  }

  /** The executor can serve again; where the run itself goes on (`stillRuns`), its keys stay blocked. */
  #endAbandoned(run: Run<In>): void {
    const { stillRuns } = run;
    this.abandonedNow--;
    const release = (): void => {
      this.#order?.release(run.calls);
      this.#dispatcher.freed(this.#settings.clock.now());
    };
    if (stillRuns === undefined) return release();
    stillRuns.then(release, release);
    this.#dispatcher.freed(this.#settings.clock.now());
  }
}
