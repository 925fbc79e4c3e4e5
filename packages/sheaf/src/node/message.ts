import { pack, unpack, type Packed } from "./wire.ts";

/** Kinds of messages between a pool and its workers. Numbers: they are one byte in a frame. */
export const Kind = {
  // to the worker
  load: 1,
  batch: 2,
  abort: 3,
  close: 4,
  // from the worker
  warming: 16,
  ready: 17,
  loadFailed: 18,
  results: 19,
  failure: 20,
  /** Nobody caught an error in a process; its end follows. */
  uncaught: 21,
} as const;

export interface Message {
  readonly kind: number;
  /** The batch it is about, as its instance counts them; 0 for none. */
  readonly id: number;
  /** `batch`: the attempt. `results` and `failure`: the run time in milliseconds. Else 0. */
  readonly value: number;
  /** Memory the worker holds, in bytes, with `results` now and then; else 0. */
  readonly memoryBytes: number;
  readonly packed: Packed | undefined;
}

/** One end of the way between a pool and a worker. */
export interface Port {
  send(message: Message): void;
}

export const message = (kind: number, id = 0, value = 0, packed?: Packed, memoryBytes = 0): Message => ({
  kind,
  id,
  value,
  memoryBytes,
  packed,
});

/** An error is a list of one slot. */
export const packError = (error: unknown): Packed =>
  pack([error instanceof Error ? error : new Error(`Thrown: ${String(error)}`, { cause: error })]);

export const unpackError = (packed: Packed): Error => unpack(packed, "own")[0] as Error;
