import type { DetailedResult } from "../contract/batcher.ts";
import type { Scheduler } from "../dispatch/scheduler.ts";
import type { Entrance } from "../queue/entrance.ts";
import type { Queue } from "../queue/queue.ts";
import type { CallOptions } from "../contract/options.ts";
import type { Admission } from "../queue/admission.ts";
import { Entry, type RunOfBatch, type Settler, type Terms } from "../queue/entry.ts";
import type { AbortSignalLike } from "../runtime/signals.ts";
import { checkCallOptions, laneOf, type Settings } from "../contract/settings.ts";

// One executor for all promises, so that no closure is made per call: it gives `resolve` to the entry that enters next.
let target: Entry;
const capture = (resolve: (value: never) => void): void => {
  target.settler = resolve as Settler;
};

export interface Calls<In, Out> {
  /** The batcher as a function. */
  call(item: In, callOptions?: unknown): Promise<Out>;
  detailed(item: In, callOptions?: CallOptions): Promise<DetailedResult<Out>>;
  /** Like `call`, with the choice whether to wait for room. */
  enter(item: In, callOptions: CallOptions | undefined, waits: boolean): Promise<Out>;
  /**
   * Refuses a call before its item is known, and its options where they are undefined, if any other in its lane would be refused.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  checkRoom(callOptions: CallOptions | undefined): void;
  /**
   * How a call or a list of so many items waits, after `scheduler.arriving`.
   * @throws the reason, when the call may not even try.
   */
  termsOf(callOptions: CallOptions | number | null | undefined, items: number): Terms;
}

/** One item at a time: the steps of each call before its item waits in the queue. */
export function callsOf<In, Out>(
  settings: Settings<In, Out>,
  queue: Queue<In>,
  admission: Admission<In>,
  entrance: Entrance<In, Out>,
  scheduler: Scheduler<In, Out>,
): Calls<In, Out> {
  const { epochs } = queue;
  const room = admission.roomOf(1);
  const laneQueue = queue.onlyGroup?.laneQueue(1);
  // No weight, gate or key but that of the tenant: no other function to call.
  const hasTerms =
    laneQueue === undefined ||
    settings.weigh !== undefined ||
    settings.orderKey !== undefined ||
    settings.dedupeKey !== undefined ||
    settings.refuseLate !== undefined;
  const isPlain = !hasTerms && settings.fairKey === undefined;
  const hasTimeout = settings.timeoutMs !== undefined;
  const mayWait = settings.onQueueFull === "wait";

  const call = (item: In, callOptions?: unknown): Promise<Out> => {
    // First: a clock may call the batcher, which must not happen between a call and its place in the queue.
    scheduler.arriving(1);
    if (isPlain && (typeof callOptions !== "object" || callOptions === null) && admission.refusal === undefined) {
      if (room.hasRoom()) {
        const entry = new Entry(item, scheduler.burst, epochs.current);
        target = entry;
        const promise = new Promise<Out>(capture);
        queue.push(entry, laneQueue);
        if (hasTimeout) queue.cancellation.watch(entry);
        return promise;
      }
    }
    return enter(item, callOptions as CallOptions | undefined, mayWait);
  };

  /** The same with tenants and nothing else. */
  const callInTurn = (item: In, callOptions?: unknown): Promise<Out> => {
    scheduler.arriving(1);
    if (typeof callOptions === "object" && callOptions !== null) return enter(item, callOptions, mayWait);
    let entry: Entry<In>;
    try {
      entry = entrance.inTurn(item, scheduler.burst);
    } catch (error) {
      return Promise.reject(error);
    }
    if (!room.hasRoomFor(entry.keys!.tenant)) return holdInTurn(entry);
    target = entry;
    const promise = new Promise<Out>(capture);
    queue.push(entry, laneQueue!);
    if (hasTimeout) queue.cancellation.watch(entry);
    queue.tenants!.entered(entry);
    return promise;
  };

  const holdInTurn = (entry: Entry<In>): Promise<Out> =>
    new Promise<Out>((resolve) => {
      admission.checkOpen(1, undefined);
      entry.settler = resolve as Settler;
      entrance.hold(entry, entry.settler, mayWait);
    });

  /** Call it after `scheduler.arriving`. */
  const enter = (item: In, callOptions: CallOptions | number | null | undefined, waits: boolean): Promise<Out> =>
    new Promise<Out>((resolve) => {
      // A throw here rejects the promise, as in any promise executor.
      entrance.enter(item, resolve as Settler, termsOf(callOptions, 1), waits);
    });

  const termsOf = (callOptions: CallOptions | number | null | undefined, items: number): Terms => {
    if (typeof callOptions !== "object" || callOptions === null) {
      admission.checkOpen(items, undefined);
      return scheduler.burst;
    }
    checkCallOptions(callOptions);
    const { signal, timeoutMs, priority, tag, alone = false } = callOptions;
    const watched = signal as unknown as AbortSignalLike | undefined;
    admission.checkOpen(items, watched);
    const { arrivedAtMs } = scheduler.burst;
    const deadlineAtMs = arrivedAtMs + (timeoutMs ?? settings.timeoutMs ?? Infinity);
    return { lane: laneOf(priority), signal: watched, deadlineAtMs, arrivedAtMs, tag, alone };
  };

  const detailed = (item: In, callOptions?: CallOptions): Promise<DetailedResult<Out>> =>
    new Promise((resolve, reject) => {
      scheduler.arriving(1);
      const settler: Settler = { fulfil: (...outcome) => resolve(detailedResultOf<Out>(...outcome)), reject };
      entrance.enter(item, settler, termsOf(callOptions, 1), mayWait);
    });

  const checkRoom = (callOptions: CallOptions | undefined): void => {
    if (callOptions === undefined) return entrance.checkRoom(undefined);
    // No arrival for the policy: a call that is let in comes again, with its item.
    const arrivedAtMs = settings.clock.now();
    const { priority, timeoutMs = settings.timeoutMs ?? Infinity } = callOptions;
    const deadlineAtMs = arrivedAtMs + timeoutMs;
    const lane = laneOf(priority);
    return entrance.checkRoom({ lane, deadlineAtMs, arrivedAtMs, signal: undefined, tag: undefined, alone: false });
  };

  return { call: hasTerms || isPlain ? call : callInTurn, detailed, enter, checkRoom, termsOf };
}

/** The result that `detailed` gives, made from the run of the batch in which the item runs. */
export function detailedResultOf<Out>(
  value: unknown,
  { batchId, size, startedAtMs, runMs }: RunOfBatch,
  arrivedAtMs: number,
  nowMs: number,
): DetailedResult<Out> {
  const queueMs = Math.max(0, startedAtMs - arrivedAtMs);
  return { value: value as Out, batchId, batchSize: size, queueMs, runMs: runMs ?? nowMs - startedAtMs };
}
