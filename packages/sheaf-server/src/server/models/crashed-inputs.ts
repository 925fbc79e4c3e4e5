import { BatcherError } from "sheaf";
import { itemKey } from "../../cache/item-key.ts";

const maxRemembered = 1000;

/**
 * The inputs of a model that have crashed a worker or run longer than RUN_TIMEOUT_MS, each found alone. They are refused for a while: otherwise a caller who
 * knows one could keep the model down. Nothing is computed for other inputs until there is one.
 */
export class CrashedInputs {
  /** Inputs found to crash a worker. */
  found = 0;
  /** Inputs refused because they had crashed one. */
  refused = 0;
  readonly #model: string;
  readonly #refuseMs: number;
  readonly #keyOf: (item: unknown) => string;
  /** Key → when it may run again, the oldest first. */
  readonly #endsAtMs: Map<string, number> = new Map();

  /**
   * `refuseMs`: how long an input is refused; 0 lets it run again. `keyOf`: equal for equal items; a cache gives its own,
   * which it has just computed.
   */
  constructor(model: string, refuseMs: number, keyOf: (item: unknown) => string = itemKey) {
    this.#model = model;
    this.#refuseMs = refuseMs;
    this.#keyOf = keyOf;
  }

  get isEmpty(): boolean {
    return this.#endsAtMs.size === 0;
  }

  /** Why this input is not run; undefined where it may. */
  refusal(item: unknown): BatcherError | undefined {
    if (this.isEmpty) return undefined;
    const key = this.#keyOf(item);
    const endsAtMs = this.#endsAtMs.get(key);
    if (endsAtMs === undefined) return undefined;
    const leftMs = Math.ceil(endsAtMs - performance.now());
    if (leftMs <= 0) {
      this.#endsAtMs.delete(key);
      return undefined;
    }
    this.refused++;
    const message = `This input has crashed or blocked a worker of ${this.#model} and is not run again for ${Math.ceil(leftMs / 1000)} s (CRASHED_INPUT_MS).`;
    return new BatcherError("WORKER_CRASHED", message, { items: 1, refusedForMs: leftMs });
  }

  /** Remembers an input whose run ended with this error, where it alone crashed a worker. */
  note(item: unknown, error: unknown): void {
    if (!(error instanceof BatcherError)) return;
    const { items, size, refusedForMs } = error.details;
    const isFound = error.code === "WORKER_CRASHED" ? items === 1 : error.code === "RUN_TIMEOUT" && size === 1;
    if (!isFound || refusedForMs !== undefined) return;
    this.found++;
    if (this.#refuseMs === 0) return;
    const key = this.#keyOf(item);
    this.#endsAtMs.delete(key);
    this.#endsAtMs.set(key, performance.now() + this.#refuseMs);
    if (this.#endsAtMs.size <= maxRemembered) return;
    const [oldest] = this.#endsAtMs.keys();
    this.#endsAtMs.delete(oldest!);
  }
}
