import type { BatchRecord } from "../../policies/policy.ts";
import { describe } from "../../shared/describe.ts";
import { warnOnce } from "../runtime/warnings.ts";

type Listener = (record: BatchRecord) => void;

/** The subscribers to the record of every batch. One that throws is reported once, and affects nothing. */
export class Subscribers {
  readonly #name: string;
  readonly #warn = warnOnce();
  readonly #listeners: Set<Listener> = new Set();

  constructor(name: string) {
    this.#name = name;
  }

  /** The same function may subscribe twice. Returns a function that ends it. */
  add(listener: Listener): () => void {
    if (typeof listener !== "function") throw new TypeError(`subscribe needs a function, got ${describe(listener)}`);
    const own: Listener = (record) => listener(record);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  observe(record: BatchRecord): void {
    for (const listener of this.#listeners) {
      try {
        listener(record);
      } catch (error) {
        this.#warn(`${this.#name}: a subscriber threw; further errors of it are not reported.`, error);
      }
    }
  }
}
