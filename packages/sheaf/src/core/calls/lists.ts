import type { DetailedResult } from "../contract/detailed-result.ts";
import type { Batcher } from "../contract/batcher.ts";
import type { Calls } from "./calls.ts";
import type { Scheduler, SchedulerParts } from "../dispatch/scheduler.ts";
import { mapOver } from "./map.ts";
import { detailedResultOf, manyCall, settleCall, type MultiCall } from "./multi-call.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { CallOptions } from "../contract/options.ts";
import { newAbortController, type AbortSignalLike } from "../runtime/globals.ts";
import { checkCallOptions } from "../contract/settings.ts";
import { describe } from "../../shared/describe.ts";

/** Several items of one caller. */
export function listsOf<In, Out>(
  { settings, settlement, admission }: SchedulerParts<In, Out>,
  scheduler: Scheduler<In, Out>,
  lifecycle: Lifecycle<In, Out>,
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
      if (settings.refuseLate !== undefined) admission.refuseLate(array.length, terms);
      // Throws before anything is enqueued, so the whole list is refused.
      admission.enterList(array, listOf(array.length, resolve, reject), terms, mayWait);
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

    map: (items: Iterable<In> | AsyncIterable<In>, callOptions?: CallOptions) => {
      // Its own signal cancels waiting items when the consumer leaves early; the caller's signal is forwarded to it.
      const controller = newAbortController();
      const options = callOptions ?? {};
      checkCallOptions(options);
      const watched = options.signal as unknown as AbortSignalLike | undefined;
      let passOn = (): void => undefined;
      const begin = (): Promise<never> | undefined => {
        if (watched === undefined) return undefined;
        return new Promise((_, reject) => {
          passOn = () => {
            controller.abort(watched.reason);
            reject(watched.reason);
          };
          if (watched.aborted) passOn();
          else settlement.cancellation.aborts.add(watched, passOn);
        });
      };
      return mapOver<In, Out>(items, {
        window: Math.max(1, Math.min(admission.maxQueueSize, settings.maxBatchSize * (settings.concurrency + 1), 4096)),
        begin,
        hasRoom: () => admission.hasRoom(),
        call: (item) => {
          scheduler.arriving(1);
          return enter(item, { ...options, signal: controller.signal }, true);
        },
        withdraw: () => {
          if (watched !== undefined) settlement.cancellation.aborts.remove(watched, passOn);
          controller.abort(lifecycle.closedError("map() ended before this item had run."));
        },
      });
    },
  };
}

/** The caller's own array, or the items of another iterable. */
function arrayOf<In>(items: Iterable<In>): ArrayLike<In> {
  if (Array.isArray(items)) return items as In[];
  if (typeof (items as Partial<Iterable<In>> | null | undefined)?.[Symbol.iterator] !== "function") {
    throw new TypeError(`items must be an iterable, got ${describe(items)}`);
  }
  return Array.from(items);
}
