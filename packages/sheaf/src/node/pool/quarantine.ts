import type { Clock } from "../../core/runtime/runtime.ts";
import { BatcherError } from "../../core/contract/errors.ts";
import type { Job } from "./instance.ts";
import type { Instances } from "./instances.ts";
import { QuarantineWorker, type SuspectRun } from "./quarantine-worker.ts";

/** A part of a suspect batch. */
interface Part {
  /** Of its items in the batch. */
  readonly indices: readonly number[];
  /** Of a left half: the right one. */
  readonly sibling?: Part | undefined;
  /** Its other half passed, so the fault is in here: running it whole would show nothing new. */
  proven: boolean;
}

interface Suspect {
  readonly run: Job;
  readonly crash: Error;
  abort: { readonly reason: unknown } | undefined;
}

/**
 * Runs the batches that were running when a worker crashed, one at a time, in one instance of its own, so that the
 * others go on serving: the whole batch again (most crashes come from outside), then halves, until the bad items stand
 * alone. At most ⌈log2 n⌉ + 2 crashes a batch; the remaining items then get `WORKER_CRASHED`.
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
  isolate(run: Job, crash: Error): void {
    // Its callers have left: if it hung here, it would hold up all the others.
    if (run.handle.signal.aborted) return run.reject(run.handle.signal.reason);
    this.#suspects.push({ run, crash, abort: undefined });
    this.#busy ??= this.#work();
  }

  /** Whether the batch is here. If so it ends with `reason`: its callers have left. */
  aborted(run: Job, reason: unknown): boolean {
    const suspect = [this.#running, ...this.#suspects].find((candidate) => candidate?.run === run);
    if (suspect === undefined) return false;
    suspect.abort ??= { reason };
    if (suspect === this.#running) this.#worker.giveUp(run.handle, new Error("Every caller of the batch has left."));
    return true;
  }

  /** Resolves when every suspect has settled and the instance is closing. */
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
    const parts: Part[] = [{ indices: [...run.items.keys()], proven: false }];
    let crashes = 0;
    let attempt = run.attempt;
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      const { proven } = part;
      if (isAborted(suspect)) return run.reject(suspect.abort?.reason);
      // Items that have an answer do not run again.
      const indices = part.indices.filter((index) => !run.handle.isAnswered(index));
      if (indices.length === 0) continue;
      const isWhole = indices.length === size;
      if (crashes >= maxCrashes) {
        place(results, indices, this.#crashed(indices.length, crashes, suspect.crash));
        continue;
      }
      let outcome: SuspectRun | undefined;
      if (!proven || indices.length === 1) {
        attempt++;
        run.handle.runsAgain();
        const handle = isWhole ? run.handle : run.handle.part(indices);
        const items = isWhole ? run.items : indices.map((index) => run.items[index]);
        outcome = await this.#worker.run({ items, handle, attempt });
        if (isAborted(suspect)) return run.reject(suspect.abort?.reason);
      }
      if (outcome !== undefined && "results" in outcome) {
        if (isWhole) return run.resolve(outcome.results);
        for (const [i, index] of indices.entries()) results[index] = outcome.results[i];
        // The whole crashed and this half did not: the fault is in the other half, which is next.
        if (part.sibling !== undefined) part.sibling.proven = true;
      } else if (outcome !== undefined && ("error" in outcome || "notRun" in outcome)) {
        const error = "error" in outcome ? outcome.error : outcome.notRun;
        if (part.indices.length === size) return run.reject(error);
        place(results, indices, error);
      } else {
        if (outcome !== undefined) crashes++;
        if (indices.length === 1) {
          place(results, indices, this.#crashed(1, crashes, outcome?.crash ?? suspect.crash));
        } else {
          const middle = Math.ceil(indices.length / 2);
          const right = { indices: indices.slice(middle), proven: false };
          parts.push(right, { indices: indices.slice(0, middle), sibling: right, proven: false });
        }
      }
    }
    run.resolve(results);
  }

  #crashed(items: number, crashes: number, cause: Error): BatcherError {
    const what = items === 1 ? "this item" : `a part of ${items} items that could not be told apart`;
    return new BatcherError(
      "WORKER_CRASHED",
      `${this.#name}: the worker crashes on ${what} (${crashes} crashes during the search): ${cause.message}`,
      { crashes, items },
      cause,
    );
  }
}

const isAborted = ({ abort }: Suspect): boolean => abort !== undefined;

function place(results: unknown[], indices: readonly number[], error: unknown): void {
  for (const index of indices) results[index] = error;
}
