import type { Clock } from "../core/clock.ts";
import { BatcherError } from "../core/errors.ts";
import type { Run } from "./instance.ts";
import type { Instances } from "./instances.ts";
import { QuarantineWorker, type Outcome } from "./quarantine-worker.ts";

/** A part of a suspect batch. */
interface Part {
  readonly from: number;
  readonly to: number;
  /** Of a left half: the right one. */
  readonly sibling?: Part | undefined;
  /** Its other half passed, so the fault is in here: running it whole tells nothing. */
  proven: boolean;
}

interface Suspect {
  readonly run: Run;
  readonly crash: Error;
  abort: { readonly reason: unknown } | undefined;
}

/**
 * Runs the batches that were running when a worker crashed, one at a time, in one instance of its own, so that the
 * others go on serving: the whole batch again (most crashes come from outside), then halves, until the bad items stand
 * alone. At most ⌈log2 n⌉ + 2 crashes a batch; what is left then gets `WORKER_CRASHED`.
 */
export class Quarantine {
  readonly #name: string;
  readonly #worker: QuarantineWorker;
  readonly #suspects: Suspect[] = [];
  #busy: Promise<void> | undefined;
  #running: Suspect | undefined;

  constructor(name: string, instances: Instances, clock: Clock) {
    this.#name = name;
    this.#worker = new QuarantineWorker(name, instances, clock);
  }

  /** Takes over a batch: settles it, whatever happens. `crash` is the one that it is suspected of. */
  isolate(run: Run, crash: Error): void {
    // Nobody waits for it: one that hangs here would hold up everybody behind it.
    if (run.handle.signal.aborted) return run.reject(run.handle.signal.reason);
    this.#suspects.push({ run, crash, abort: undefined });
    this.#busy ??= this.#work();
  }

  /** Whether the batch is here. It ends with `reason` then: nobody waits for it. */
  aborted(run: Run, reason: unknown): boolean {
    const suspect = [this.#running, ...this.#suspects].find((candidate) => candidate?.run === run);
    if (suspect === undefined) return false;
    suspect.abort ??= { reason };
    if (suspect === this.#running) this.#worker.giveUp(run.handle, new Error("Nobody waits for the batch any more."));
    return true;
  }

  /** Resolves when every suspect is settled and the instance has been told to end. */
  async close(): Promise<void> {
    await this.#busy;
  }

  async #work(): Promise<void> {
    for (let next = this.#suspects.shift(); next !== undefined; next = this.#suspects.shift()) {
      this.#running = next;
      await this.#isolate(next);
    }
    this.#running = undefined;
    this.#busy = undefined;
    this.#worker.rest();
  }

  async #isolate(suspect: Suspect): Promise<void> {
    const { run } = suspect;
    const size = run.items.length;
    const maxCrashes = Math.ceil(Math.log2(Math.max(size, 1))) + 2;
    const results: unknown[] = new Array<unknown>(size);
    const parts: Part[] = [{ from: 0, to: size, proven: false }];
    let crashes = 0;
    let attempt = run.attempt;
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      const { from, to, proven } = part;
      if (isAborted(suspect)) return run.reject(suspect.abort?.reason);
      if (crashes >= maxCrashes) {
        results.fill(this.#crashed(to - from, crashes, suspect.crash), from, to);
        continue;
      }
      let outcome: Outcome | undefined;
      if (!proven || to - from === 1) {
        attempt++;
        run.handle.runsAgain();
        const items = to - from === size ? run.items : run.items.slice(from, to);
        outcome = await this.#worker.run({ items, handle: run.handle, attempt });
        if (isAborted(suspect)) return run.reject(suspect.abort?.reason);
      }
      if (outcome !== undefined && "results" in outcome) {
        if (to - from === size) return run.resolve(outcome.results);
        place(results, from, to, outcome.results);
        // The parent crashed and this half did not: it is the other half, which is next.
        if (part.sibling !== undefined) part.sibling.proven = true;
      } else if (outcome !== undefined && "error" in outcome) {
        if (to - from === size) return run.reject(outcome.error);
        results.fill(outcome.error, from, to);
      } else if (outcome !== undefined && "notRun" in outcome) {
        if (to - from === size) return run.reject(outcome.notRun);
        results.fill(outcome.notRun, from, to);
      } else {
        if (outcome !== undefined) crashes++;
        if (to - from === 1) {
          results[from] = this.#crashed(1, crashes, outcome?.crash ?? suspect.crash);
        } else {
          const middle = from + Math.ceil((to - from) / 2);
          const right = { from: middle, to, proven: false };
          parts.push(right, { from, to: middle, sibling: right, proven: false });
        }
      }
    }
    run.resolve(results);
  }

  #crashed(items: number, crashes: number, cause: Error): BatcherError {
    const what = items === 1 ? "this item" : `a part of ${items} items that could not be told apart`;
    return new BatcherError(
      "WORKER_CRASHED",
      `${this.#name}: the worker crashes on ${what} (${crashes} crashes while it was looked for): ${cause.message}`,
      { crashes, items },
      cause,
    );
  }
}

const isAborted = ({ abort }: Suspect): boolean => abort !== undefined;

function place(results: unknown[], from: number, to: number, part: readonly unknown[]): void {
  for (let i = from; i < to; i++) results[i] = part[i - from];
}
