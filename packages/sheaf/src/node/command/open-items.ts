import { describe } from "../../shared/describe.ts";
import type { RowOwnership } from "../wire/layout.ts";
import type { WorkerColumn } from "./declaration.ts";
import type { Frame } from "./frame.ts";
import { checkResult, countResults, readResult } from "./results.ts";

export interface EarlyAnswers {
  readonly places: readonly number[];
  values(ownership: RowOwnership): unknown[];
}

/** The items of a worker's batch that have no answer yet. */
export class OpenItems {
  readonly size: number;
  #answered: Set<number> | undefined;

  constructor(size: number) {
    this.size = size;
  }

  /** Their places, in ascending order; undefined while no item has been answered. */
  get places(): number[] | undefined {
    const answered = this.#answered;
    if (answered === undefined) return undefined;
    return Array.from({ length: this.size }, (_, place) => place).filter((place) => !answered.has(place));
  }

  /** Reads an `answer` message. @throws {Error} that names the field that is wrong. */
  answered(outputs: readonly WorkerColumn[], frame: Frame): EarlyAnswers {
    const places = frame.header["indices"];
    if (!Array.isArray(places)) throw new Error(`an answer with ${describe(places)} as indices`);
    for (const place of places as unknown[]) {
      const isOpen = Number.isInteger(place) && (place as number) >= 0 && (place as number) < this.size;
      if (!isOpen || this.#answered?.has(place as number))
        throw new Error(`an answer for item ${describe(place)}, which is not open in a batch of ${this.size}`);
      (this.#answered ??= new Set()).add(place as number);
    }
    const checked = checkResult(outputs, frame);
    const count = countResults(checked);
    if (count !== places.length) throw new Error(`an answer with ${count} results for ${places.length} items`);
    return { places, values: (ownership) => readResult(outputs, checked, places.length, ownership, places) };
  }

  /** Reads a `result` message: a value or an `Error` for each open item, in order. @throws {Error} as `answered`. */
  ended(outputs: readonly WorkerColumn[], frame: Frame): (ownership: RowOwnership) => unknown[] {
    const checked = checkResult(outputs, frame);
    const { places } = this;
    return (ownership) => readResult(outputs, checked, places?.length ?? this.size, ownership, places);
  }
}
