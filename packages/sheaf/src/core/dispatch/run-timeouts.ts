import { BatcherError } from "../contract/errors.ts";
import type { Settings } from "../contract/settings.ts";
import type { TimedRun } from "./timed-run.ts";

/** Is told what runs that were given up do. */
interface Slots {
  readonly throttle: { failed(error: unknown): void };
  freed(nowMs: number): void;
}

/** Runs that never end and whose item was found, at most: they hold no slot of others. */
const mostBlamed = 64;

/** Gives up runs that take too long: longer than `runTimeoutMs`, or than what is given to a part of one. */
export class RunTimeouts {
  abandonedRuns = 0;
  readonly runTimeoutMs: number;
  /** Given up, and not ended. */
  readonly #still: Set<TimedRun> = new Set();
  /** Those of them for which an item was found. */
  readonly #blamed: Set<TimedRun> = new Set();
  readonly #settings: Pick<Settings<never, never>, "clock" | "name">;
  readonly #slots: Slots;
  #isClosed = false;

  constructor(settings: Pick<Settings<never, never>, "clock" | "name">, runTimeoutMs: number, slots: Slots) {
    this.#settings = settings;
    this.runTimeoutMs = runTimeoutMs;
    this.#slots = slots;
  }

  /** Runs that were abandoned and have not ended, without those for which an item was found. */
  get abandonedNow(): number {
    return this.#still.size - this.#blamed.size;
  }

  /** The batcher is closed: no run is timed any longer. */
  close(): void {
    this.#isClosed = true;
  }

  /** These go on for an item that was found: they are no reason to run nothing else. */
  blamed(runs: readonly TimedRun[]): void {
    for (const run of runs) if (this.#still.has(run) && this.#blamed.size < mostBlamed) this.#blamed.add(run);
  }

  /** Rejects where it takes longer than `limitMs`. With `reportsStart` the time begins when the executor says so. */
  attempt(run: TimedRun, limitMs: number, reportsStart: boolean, begin: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let cancel: (() => void) | undefined;
      const stop = (): void => cancel?.();
      const start = (): void => {
        stop();
        if (!run.abandoned && !this.#isClosed)
          cancel = this.#settings.clock.after(limitMs, () => reject(this.#giveUp(run, limitMs)));
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
          if (run.abandoned) this.#slots.throttle.failed(error);
          ended();
          reject(error);
        },
      );
    });
  }

  #giveUp(run: TimedRun, limitMs: number): BatcherError {
    const { runTimeoutMs } = this;
    const { size, batchId } = run;
    const isPart = limitMs < runTimeoutMs;
    const message = isPart
      ? `a batch ran longer than ${runTimeoutMs} ms (runTimeoutMs), and ${size} of its items, run again, took far longer than usual.`
      : `a batch of ${size} items ran longer than ${runTimeoutMs} ms (runTimeoutMs) and was given up. ` +
        "Raise runTimeoutMs, lower maxBatchSize, or end the run when context.signal aborts.";
    const error = new BatcherError(
      "RUN_TIMEOUT",
      `${this.#settings.name}: ${message}`,
      isPart ? { size, batchId } : { runTimeoutMs, size, batchId },
    );
    this.#still.add(run);
    this.abandonedRuns++;
    run.givenUp(error);
    return error;
  }

  /** The executor can serve again; where the run itself goes on (`stillRuns`), its keys stay blocked. */
  #endAbandoned(run: TimedRun): void {
    const { stillRuns } = run;
    this.#still.delete(run);
    this.#blamed.delete(run);
    const release = (): void => {
      run.endedLate();
      this.#slots.freed(this.#settings.clock.now());
    };
    if (stillRuns === undefined) return release();
    stillRuns.then(release, release);
    this.#slots.freed(this.#settings.clock.now());
  }
}
