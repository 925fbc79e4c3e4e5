import type { DetailedResult } from "../contract/detailed-result.ts";
import type { Batcher } from "../contract/batcher.ts";
import type { Calls } from "./calls.ts";
import type { Scheduler, SchedulerParts } from "../dispatch/scheduler.ts";
import { mapOver } from "./map.ts";
import { detailedResultOf, manyCall, settleCall, type MultiCall } from "./multi-call.ts";
import type { CallOptions } from "../contract/options.ts";
import { checkCallOptions } from "../contract/settings.ts";
import { describe } from "../../shared/describe.ts";

/** Several items of one caller. */
export function listsOf<In, Out>(
  { settings, settlement, admission, entrance, gates }: SchedulerParts<In, Out>,
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
      for (const gate of gates) gate(array.length, terms);
      // Throws before anything is enqueued, so the whole list is refused.
      entrance().enterList(array, listOf(array.length, resolve, reject), terms, mayWait);
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
      return mapOver<In, Out>(
        items,
        { ...callOptions },
        {
          get window() {
            return Math.min(admission.maxQueueSize, settings.maxBatchSize * (settings.concurrency + 1));
          },
          aborts: settlement.cancellation.aborts,
          hasRoom: () => admission.hasRoom(),
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
