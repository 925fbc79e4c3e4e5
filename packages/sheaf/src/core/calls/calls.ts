import type { DetailedResult } from "../contract/batcher.ts";
import type { Scheduler } from "../dispatch/scheduler.ts";
import type { Entrance, Terms } from "../queue/entrance.ts";
import type { Queue } from "../queue/queue.ts";
import type { CallOptions } from "../contract/options.ts";
import type { Admission } from "../queue/admission.ts";
import type { Chunk, Settler } from "../queue/chunk.ts";
import type { Account } from "../queue/tenants.ts";
import type { AbortSignalLike } from "../runtime/runtime.ts";
import { checkCallOptions, laneOf, type Settings } from "../contract/settings.ts";

// One executor for all promises, so that no closure is made per call: it puts `resolve` where the next entry's settler
// stands. A variable for the function itself would be a pointer from old to new memory at every call, which costs the
// garbage collector more than the rest of a call.
let target: Chunk;
const capture = (resolve: (value: never) => void): void => {
  target.settlers[target.count] = resolve as Settler;
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
  // No weight, deadline or key but that of the tenant: no other function to call and nothing to watch.
  const hasTerms =
    laneQueue === undefined ||
    settings.weigh !== undefined ||
    settings.orderKey !== undefined ||
    settings.dedupeKey !== undefined ||
    settings.timeoutMs !== undefined;
  const isPlain = !hasTerms && settings.fairKey === undefined;
  const mayWait = settings.onQueueFull === "wait";

  const call = (item: In, callOptions?: unknown): Promise<Out> => {
    // First: a clock may call the batcher, which must not happen between a call and its place in the queue.
    scheduler.arriving(1);
    if (isPlain && (typeof callOptions !== "object" || callOptions === null) && admission.refusal === undefined) {
      if (room.hasRoom()) {
        const chunk = queue.tail(laneQueue, epochs.current);
        if (target !== chunk) target = chunk as unknown as Chunk;
        const promise = new Promise<Out>(capture);
        queue.fill(chunk, laneQueue, item, scheduler.burstAtMs);
        return promise;
      }
    }
    return enter(item, callOptions as CallOptions | undefined, mayWait);
  };

  /** The same with tenants and nothing else. */
  const callInTurn = (item: In, callOptions?: unknown): Promise<Out> => {
    scheduler.arriving(1);
    if (typeof callOptions === "object" && callOptions !== null) return enter(item, callOptions, mayWait);
    let tenant: Account<In>;
    try {
      tenant = entrance.tenantOf(item);
    } catch (error) {
      return Promise.reject(error);
    }
    if (!room.hasRoomFor(tenant)) return holdInTurn(item, tenant);
    const chunk = queue.tail(laneQueue!, epochs.current);
    if (target !== chunk) target = chunk as unknown as Chunk;
    const promise = new Promise<Out>(capture);
    queue.fill(chunk, laneQueue!, item, scheduler.burstAtMs);
    queue.tenants!.entered(chunk, chunk.count - 1, tenant);
    return promise;
  };

  const holdInTurn = (item: In, tenant: Account<In>): Promise<Out> =>
    new Promise<Out>((resolve) => {
      const arrival = { item, weight: 1, group: undefined, orderKey: undefined, dedupeKey: undefined, tenant };
      entrance.hold(arrival, resolve as Settler, termsOf(undefined, 1), mayWait);
    });

  /** Call it after `scheduler.arriving`. */
  const enter = (item: In, callOptions: CallOptions | number | null | undefined, waits: boolean): Promise<Out> =>
    new Promise<Out>((resolve) => {
      // A throw here rejects the promise, as in any promise executor.
      entrance.enter(item, resolve as Settler, termsOf(callOptions, 1), waits);
    });

  const termsOf = (callOptions: CallOptions | number | null | undefined, items: number): Terms => {
    const isObject = typeof callOptions === "object" && callOptions !== null;
    const { signal, timeoutMs, priority, tag, alone = false } = isObject ? callOptions : {};
    if (isObject) checkCallOptions(callOptions);
    const watched = signal as unknown as AbortSignalLike | undefined;
    admission.checkOpen(items, watched);
    const arrivedAtMs = scheduler.burstAtMs;
    const lane = laneOf(priority);
    const waitMs = timeoutMs ?? settings.timeoutMs ?? Infinity;
    const deadlineAtMs = arrivedAtMs + waitMs;
    return { lane, signal: watched, deadlineAtMs, arrivedAtMs, tag, alone };
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

/** The result that `detailed` gives, made from the chunk of the batch in which the item runs. */
export function detailedResultOf<Out>(value: unknown, chunk: Chunk, index: number, nowMs: number): DetailedResult<Out> {
  const { batchId, size, startedAtMs, runMs = nowMs - startedAtMs } = chunk.run!;
  const queueMs = Math.max(0, startedAtMs - chunk.arrivedAtMs(index));
  return { value: value as Out, batchId, batchSize: size, queueMs, runMs };
}
