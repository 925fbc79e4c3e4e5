/** How `map` reaches its batcher. */
export interface MapTarget<In, Out> {
  /** Calls that may be under way at once: enough to fill every slot and the batches behind them. */
  readonly window: number;
  /** Called when the first result is asked for; rejects when the caller aborts. `undefined` without a signal. */
  begin(): Promise<never> | undefined;
  hasRoom(): boolean;
  call(item: In): Promise<Out>;
  /** Cancels every call that still waits. */
  withdraw(): void;
}

type Source<In> = Iterable<In> | AsyncIterable<In>;

/**
 * Results of a source of any length, in its order and in bounded memory: an item is pulled only while there is room.
 * Ends on the first error, in order; the source is closed in every case.
 */
export async function* mapOver<In, Out>(
  source: Source<In>,
  target: MapTarget<In, Out>,
): AsyncGenerator<Out, void, void> {
  const iterator = iteratorOf(source);
  const aborted = target.begin();
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
    const result = target.call(pulled.value);
    result.catch(() => undefined); // reported when its turn comes, or never, after an earlier error
    underWay.push(result);
  };
  try {
    for (;;) {
      const head = underWay[0];
      if (end === undefined && (head === undefined || (underWay.length < target.window && target.hasRoom()))) {
        try {
          const step = pulling ?? iterator.next();
          if (!isPromise(step)) {
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
    target.withdraw();
    if (isSourceOpen) {
      const closed = Promise.resolve(iterator.return?.());
      // A source that is asked for its next item right now may never answer: do not wait for it.
      if (pulling === undefined) await closed;
      else for (const promise of [pulling, closed]) promise.catch(() => undefined);
    }
  }
}

const ready = (): undefined => undefined;

const isPromise = <T>(value: T | Promise<T>): value is Promise<T> =>
  typeof (value as { then?: unknown }).then === "function";

function iteratorOf<In>(source: Source<In>): Iterator<In> | AsyncIterator<In> {
  const asAsync = (source as Partial<AsyncIterable<In>> | null | undefined)?.[Symbol.asyncIterator];
  if (typeof asAsync === "function") return asAsync.call(source);
  const asSync = (source as Partial<Iterable<In>> | null | undefined)?.[Symbol.iterator];
  if (typeof asSync === "function") return asSync.call(source);
  throw new TypeError("items must be an iterable or async iterable");
}
