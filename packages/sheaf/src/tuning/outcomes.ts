import type { Priority } from "../core/contract/options.ts";
import { priorities, type Lane } from "../core/contract/settings.ts";
import { latencyOf, type SimulatedEnds, type SimulatedFigures, type SimulatedLatency } from "./simulation-result.ts";

/** How each call of a simulation ended; a call is its number, from 0. */
export class Outcomes {
  readonly ends: Record<keyof SimulatedEnds, number> = noEnds();
  // By call: its moment; its latency, NaN until it has a result; its lane; its end.
  readonly #calledAtMs: Float64Array;
  readonly #latencyMs: Float64Array;
  readonly #lane: Uint8Array;
  readonly #end: (keyof SimulatedEnds | undefined)[] = [];

  constructor(calls: number) {
    this.#calledAtMs = new Float64Array(calls);
    this.#latencyMs = new Float64Array(calls).fill(Number.NaN);
    this.#lane = new Uint8Array(calls);
  }

  called(call: number, atMs: number, lane: Lane): void {
    this.#calledAtMs[call] = atMs;
    this.#lane[call] = lane;
  }

  answered(call: number, latencyMs: number): void {
    this.#latencyMs[call] = latencyMs;
    this.ended(call, "ok");
  }

  ended(call: number, end: keyof SimulatedEnds): void {
    this.#end[call] = end;
    this.ends[end]++;
  }

  /** Counts the calls from `from` on. */
  endsOf(from: number, counts: (call: number) => boolean): SimulatedEnds {
    const ends = noEnds();
    this.#end.forEach((end, call) => {
      if (end !== undefined && call >= from && counts(call)) ends[end]++;
    });
    return ends;
  }

  latency(from: number, counts: (call: number) => boolean = () => true): SimulatedLatency {
    return latencyOf(
      this.#latencyMs
        .subarray(from)
        .filter((ms, i) => !Number.isNaN(ms) && counts(from + i))
        .sort(),
    );
  }

  byPriority(from: number): Partial<Record<Priority, SimulatedFigures>> {
    const byPriority: Partial<Record<Priority, SimulatedFigures>> = {};
    for (const [lane, priority] of priorities.entries()) {
      const isOf = (call: number): boolean => this.#lane[call] === lane;
      if (this.#lane.subarray(0, this.#end.length).includes(lane))
        byPriority[priority] = { items: this.endsOf(from, isOf), latencyMs: this.latency(from, isOf) };
    }
    return byPriority;
  }

  /** By second of the call. */
  latencyBySecond(counts: (call: number) => boolean): SimulatedLatency[] {
    return this.#bySecond(counts).map((calls) =>
      latencyOf(
        Float64Array.from(
          calls.filter((call) => this.#end[call] === "ok"),
          (call) => this.#latencyMs[call]!,
        ).sort(),
      ),
    );
  }

  /** By second of the call. */
  endsBySecond(counts: (call: number) => boolean): SimulatedEnds[] {
    return this.#bySecond(counts).map((calls) => {
      const ends = noEnds();
      for (const call of calls) ends[this.#end[call]!]++;
      return ends;
    });
  }

  #bySecond(counts: (call: number) => boolean): number[][] {
    const bySecond: number[][] = [];
    for (let call = 0; call < this.#end.length; call++) {
      if (this.#end[call] === undefined || !counts(call)) continue;
      const second = Math.floor(this.#calledAtMs[call]! / 1000);
      while (bySecond.length <= second) bySecond.push([]);
      bySecond[second]!.push(call);
    }
    return bySecond;
  }
}

const noEnds = (): Record<keyof SimulatedEnds, number> => ({ ok: 0, timeout: 0, rejected: 0, error: 0, gaveUp: 0 });
