import { typedArrays } from "sheaf/internal/node";

export interface ResultCopy {
  readonly value: unknown;
  readonly bytes: number;
}

/** Objects with their header and hidden class, a typed array with its buffer: as measured with Node 20. */
const objectBytes = 64;
const typedArrayBytes = 200;
const slotBytes = 16;

const copied: ReadonlySet<object> = new Set(typedArrays.map(({ prototype }) => prototype));

/** Deeper results are not kept, so that a result that holds itself has an end. */
const deepest = 100;

/**
 * A deep copy. A row of a batch is a window into the memory of the whole batch, and what a function in this process
 * returns is still in its hands.
 * @returns undefined where a copy may not be the same in a reply: for dates, class instances, functions and the like.
 */
export function copyOfResult(result: unknown): ResultCopy | undefined {
  const copier = new Copier();
  const value = copier.copy(result, 0);
  return copier.isExact ? { value, bytes: copier.bytes } : undefined;
}

class Copier {
  bytes = 0;
  isExact = true;

  copy(value: unknown, depth: number): unknown {
    if (typeof value === "string") this.bytes += 2 * value.length + objectBytes;
    if (typeof value === "function" || typeof value === "symbol" || depth > deepest) this.isExact = false;
    if (typeof value !== "object" || value === null || !this.isExact) return value;
    const prototype: object | null = Object.getPrototypeOf(value) as object | null;
    // Not a Buffer: its JSON is another.
    if (prototype !== null && copied.has(prototype)) {
      const copy = (value as Float32Array).slice();
      this.bytes += typedArrayBytes + copy.byteLength;
      return copy;
    }
    if (Array.isArray(value)) {
      this.bytes += objectBytes + slotBytes * value.length;
      return value.map((entry) => this.copy(entry, depth + 1));
    }
    if (prototype !== null && prototype !== Object.prototype) {
      this.isExact = false;
      return undefined;
    }
    const entries = Object.entries(value);
    this.bytes += objectBytes + slotBytes * entries.length;
    // Not by assignment: a key may be __proto__.
    return Object.fromEntries(entries.map(([key, entry]) => [key, this.copy(entry, depth + 1)]));
  }
}
