import { BatcherError } from "sheaf";
import { itemKey } from "../../cache/item-key.ts";

const maxRemembered = 1000;
/** How long an input that crashed a worker or ran too long is refused: another try costs others a worker. */
const lossMs = 600_000;
/**
 * How long an input that made its run throw gets that error again. Short, because the cause may be a service that the model calls.
 */
const failureMs = 10_000;

/**
 * Inputs that broke a run of a model. They are answered at once for a while; otherwise a caller who knows one could keep the model
 * busy with it. While there are none, other inputs cost nothing.
 */
export class FoundInputs {
  /** Inputs that crashed a worker or ran too long. */
  lost = 0;
  refused = 0;
  readonly #model: string;
  readonly #keyOf: (item: unknown) => string;
  /** By key, the oldest first. */
  readonly #inputs: Map<string, { readonly error: unknown; readonly isLoss: boolean; readonly endsAtMs: number }> =
    new Map();

  /** `keyOf` gives equal items equal keys; a cache passes its own function, which has just computed the key. */
  constructor(model: string, keyOf: (item: unknown) => string = itemKey) {
    this.#model = model;
    this.#keyOf = keyOf;
  }

  get isEmpty(): boolean {
    return this.#inputs.size === 0;
  }

  /** The error for an input that must not run; undefined if it may. */
  refusal(item: unknown): Error | undefined {
    if (this.isEmpty) return undefined;
    const key = this.#keyOf(item);
    const found = this.#inputs.get(key);
    if (found === undefined) return undefined;
    const leftMs = Math.ceil(found.endsAtMs - performance.now());
    if (leftMs <= 0) {
      this.#inputs.delete(key);
      return undefined;
    }
    if (!found.isLoss) return found.error as Error;
    this.refused++;
    const message = `This input has crashed or blocked a worker of ${this.#model} and is not run again for ${Math.ceil(leftMs / 1000)} s.`;
    return new BatcherError("WORKER_CRASHED", message, { items: 1, refusedForMs: leftMs });
  }

  add(item: unknown, error: unknown): void {
    const isLoss = error instanceof BatcherError && (error.code === "WORKER_CRASHED" || error.code === "RUN_TIMEOUT");
    if (isLoss) this.lost++;
    const key = this.#keyOf(item);
    this.#inputs.delete(key);
    this.#inputs.set(key, { error, isLoss, endsAtMs: performance.now() + (isLoss ? lossMs : failureMs) });
    if (this.#inputs.size <= maxRemembered) return;
    const [oldest] = this.#inputs.keys();
    this.#inputs.delete(oldest!);
  }
}
