import { monotonicNow, processCpuMs } from "../runtime/globals.ts";

/** How busy something was: 1 is one core, or all slots. */
export interface Utilisation {
  readonly cpuCores: number;
  readonly slotShare: number;
}

interface Mark {
  readonly atMs: number;
  readonly cpuMs: number;
  readonly runMs: number;
}

const spanMs = 10_000;

/** Tells from two looks how busy the process and the slots were in between: over the last 10 to 20 s, or since the last look. */
export class UtilisationMeter {
  readonly #slots: number;
  #older: Mark | undefined;
  #newer: Mark | undefined;

  constructor(slots: number) {
    this.#slots = slots;
    this.#older = this.#newer = startMark();
  }

  /** `runMs`: run time of all batches so far. Null where the runtime does not report its CPU time. */
  look(runMs: number): Utilisation | null {
    const now = markAt(runMs);
    if (now === undefined || this.#older === undefined) return null;
    if (now.atMs - this.#newer!.atMs >= spanMs) {
      this.#older = this.#newer!;
      this.#newer = now;
    }
    const spentMs = now.atMs - this.#older.atMs;
    if (spentMs <= 0) return null;
    return {
      cpuCores: (now.cpuMs - this.#older.cpuMs) / spentMs,
      slotShare: (now.runMs - this.#older.runMs) / spentMs / this.#slots,
    };
  }
}

let started: Mark | undefined;

/** One for all batchers that start within 100 ms: reading the CPU time costs as much as the rest of making one. */
function startMark(): Mark | undefined {
  if (started === undefined || monotonicNow() - started.atMs > 100) started = markAt(0);
  return started;
}

function markAt(runMs: number): Mark | undefined {
  const cpuMs = processCpuMs();
  return cpuMs === undefined ? undefined : { atMs: monotonicNow(), cpuMs, runMs };
}
