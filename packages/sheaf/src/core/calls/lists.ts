import type { DetailedResult, Batcher } from "../contract/batcher.ts";
import { detailedResultOf, type Calls } from "./calls.ts";
import type { Scheduler } from "../dispatch/scheduler.ts";
import type { Admission } from "../queue/admission.ts";
import type { Entrance } from "../queue/entrance.ts";
import type { Queue } from "../queue/queue.ts";
import { mapOver } from "./map.ts";
import type { CallOptions } from "../contract/options.ts";
import { checkCallOptions, laneOf, type Settings } from "../contract/settings.ts";
import { describe } from "../../shared/describe.ts";
import type { MultiCallEntry } from "../queue/entry.ts";

/** However many slots there are, where two batches are smaller. */
const mostUnderWay = 4096;

/** Several items of one caller. */
export function listsOf<In, Out>(
  settings: Settings<In, Out>,
  queue: Queue<In>,
  admission: Admission<In>,
  entrance: Entrance<In, Out>,
  scheduler: Scheduler<In, Out>,
  { enter, termsOf }: Calls<In, Out>,
): Pick<Batcher<In, Out>, "settleDetailed" | "many" | "settle" | "map"> {
  const mayWait = settings.onQueueFull === "wait";

  const enterList = <T>(
    items: Iterable<In>,
    callOptions: CallOptions | undefined,
    listOf: (size: number, resolve: (value: T) => void, reject: (error: unknown) => void) => MultiCall,
  ): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const array = arrayOf(items);
      if (array.length === 0) return resolve([] as T);
      scheduler.arriving(array.length);
      const terms = termsOf(callOptions, array.length);
      entrance.ask(array.length, terms);
      // Throws before anything is enqueued, so the whole list is refused.
      entrance.enterList(array, listOf(array.length, resolve, reject), terms, mayWait);
    });

  return {
    settleDetailed: (
      items: Iterable<In>,
      callOptions?: CallOptions,
    ): Promise<PromiseSettledResult<DetailedResult<Out>>[]> =>
      enterList(items, callOptions, settleCall(detailedResultOf<Out>)),

    many: (items: Iterable<In>, callOptions?: CallOptions): Promise<Out[]> => enterList(items, callOptions, manyCall),

    settle: (items: Iterable<In>, callOptions?: CallOptions): Promise<PromiseSettledResult<Out>[]> =>
      enterList(
        items,
        callOptions,
        settleCall((value) => value as Out),
      ),

    map: (items: Iterable<In> | AsyncIterable<In>, callOptions: CallOptions = {}) => {
      checkCallOptions(callOptions);
      const room = admission.roomOf(laneOf(callOptions.priority));
      return mapOver<In, Out>(
        items,
        { ...callOptions },
        {
          get window() {
            const { maxBatchSize, slots } = settings;
            const full = maxBatchSize * (slots.limit + 1);
            return Math.min(queue.maxSize, full, Math.max(mostUnderWay, 2 * maxBatchSize));
          },
          aborts: queue.cancellation.aborts,
          hasRoom: () => room.hasRoom(),
          call: (item, options) => {
            scheduler.arriving(1);
            return enter(item, options, true);
          },
        },
      );
    },
  };
}

/** A copy: the caller may change its array while items wait for room. */
export function arrayOf<In>(items: Iterable<In>): ArrayLike<In> {
  const iterator = (items as Partial<Iterable<In>> | null | undefined)?.[Symbol.iterator];
  if (typeof items === "string" || typeof iterator !== "function") {
    throw new TypeError(`items must be an array or another iterable, got ${describe(items)}`);
  }
  return [...items];
}

/** The calls of one caller, settled together; each has its settler at its index. */
export type MultiCall = (index: number) => MultiCallEntry;

/** `many`: all results; rejects with the first error, while the other items run on. */
export function manyCall<Out>(
  size: number,
  resolve: (results: Out[]) => void,
  reject: (error: unknown) => void,
): MultiCall {
  const collect = collectorOf(size, resolve);
  return (index) => ({ fulfil: (value) => collect(index, value as Out), reject });
}

/** `settle` and `settleDetailed`: every outcome, with `valueOf` each result; never rejects. */
export const settleCall =
  <Out>(valueOf: (...outcome: Parameters<MultiCallEntry["fulfil"]>) => Out) =>
  (size: number, resolve: (outcomes: PromiseSettledResult<Out>[]) => void): MultiCall => {
    const collect = collectorOf(size, resolve);
    return (index) => ({
      fulfil: (...outcome) => collect(index, { status: "fulfilled", value: valueOf(...outcome) }),
      reject: (reason) => collect(index, { status: "rejected", reason }),
    });
  };

function collectorOf<T>(size: number, resolve: (values: T[]) => void): (index: number, value: T) => void {
  const values = new Array<T>(size);
  let left = size;
  return (index, value) => {
    values[index] = value;
    if (--left === 0) resolve(values);
  };
}
