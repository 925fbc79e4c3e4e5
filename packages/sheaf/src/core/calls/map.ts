import { isPromiseLike } from "../contract/base-run-handle.ts";
import { describe } from "../../shared/describe.ts";
import type { CallOptions } from "../contract/options.ts";
import { newAbortController, type AbortSignalLike } from "../runtime/signals.ts";

/** How `map` reaches its batcher. */
export interface MapTarget<In, Out> {
  /** Most calls under way at once: enough to fill every slot and the batches behind them. */
  readonly window: number;
  readonly aborts: {
    add(signal: AbortSignalLike, callback: () => void): void;
    remove(signal: AbortSignalLike, callback: () => void): void;
  };
  hasRoom(): boolean;
  call(item: In, options: CallOptions): Promise<Out>;
}

type Source<In> = Iterable<In> | AsyncIterable<In>;

/**
 * Results of a source of any length, in its order and in bounded memory: an item is pulled only while there is room.
 * Ends on the first error, in order; the source is closed in every case.
 */
export async function* mapOver<In, Out>(
  source: Source<In>,
  options: CallOptions,
  target: MapTarget<In, Out>,
): AsyncGenerator<Out, void, void> {
  const iterator = iteratorOf(source);
  // Its own signal cancels waiting items when the consumer leaves early; the caller's signal is forwarded to it.
  const controller = newAbortController();
  const own = { ...options, signal: controller.signal };
  const watched = options.signal as unknown as AbortSignalLike | undefined;
  let passOn = (): void => undefined;
  const aborted =
    watched &&
    new Promise<never>((_, reject) => {
      passOn = () => {
        controller.abort(watched.reason);
        reject(watched.reason);
      };
      if (watched.aborted) passOn();
      else target.aborts.add(watched, passOn);
    });
  let isAborted = false;
  aborted?.catch(() => (isAborted = true));
  const underWay: Promise<Out>[] = [];
  let pulling: Promise<IteratorResult<In>> | undefined;
  let end: { readonly error?: unknown } | undefined;
  let isSourceOpen = true;
  const take = (pulled: IteratorResult<In>): void => {
    pulling = undefined;
    if (pulled.done === true) {
      end = {};
      isSourceOpen = false;
      return;
    }
    const result = target.call(pulled.value, own);
    result.catch(() => undefined); // reported when its turn comes, or never, after an earlier error
    underWay.push(result);
  };
  try {
    for (;;) {
      const head = underWay[0];
      if (end === undefined && (head === undefined || (underWay.length < target.window && target.hasRoom()))) {
        try {
          const step = pulling ?? iterator.next();
          if (!isPromiseLike(step)) {
            take(step);
            continue;
          }
          pulling = step;
          // A slow source must delay neither a ready result nor an abort.
          const first: Promise<IteratorResult<In> | undefined>[] = [step];
          if (head !== undefined) first.push(head.then(ready, ready));
          if (aborted !== undefined) first.push(aborted);
          const pulled = first.length === 1 ? await step : await Promise.race(first);
          if (pulled !== undefined) {
            take(pulled);
            continue;
          }
        } catch (error) {
          // An abort leaves the source open, perhaps while its next item is requested.
          if (!isAborted) {
            pulling = undefined;
            isSourceOpen = false;
          }
          end = { error };
          continue;
        }
      }
      if (head === undefined) break;
      void underWay.shift();
      yield await head;
    }
    if (end !== undefined && "error" in end) throw end.error;
  } finally {
    if (watched !== undefined) target.aborts.remove(watched, passOn);
    controller.abort();
    if (isSourceOpen) {
      const closed = Promise.resolve(iterator.return?.());
      // A source that is asked for its next item right now may never answer: do not wait for it.
      if (pulling === undefined) await closed;
      else for (const promise of [pulling, closed]) promise.catch(() => undefined);
    }
  }
}

const ready = (): undefined => undefined;

export function iteratorOf<In>(source: Source<In>, name: string = "items"): Iterator<In> | AsyncIterator<In> {
  const asAsync = (source as Partial<AsyncIterable<In>> | null | undefined)?.[Symbol.asyncIterator];
  if (typeof asAsync === "function") return asAsync.call(source);
  const asSync = (source as Partial<Iterable<In>> | null | undefined)?.[Symbol.iterator];
  if (typeof asSync === "function" && typeof source !== "string") return asSync.call(source);
  throw new TypeError(`${name} must be an iterable or async iterable, got ${describe(source)}`);
}
