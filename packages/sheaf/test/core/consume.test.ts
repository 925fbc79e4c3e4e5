import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type BatchContext,
  BatcherError,
  type CallOptions,
  consume,
  createBatcher,
  type ConsumeOptions,
  type MessageSource,
} from "../../dist/index.js";
import { type ManualClock, manualClock, virtualClock } from "../../dist/testing/index.js";
import { seedsTo } from "../support/seeds.js";
import { heldBatcher, numbers, timedBatcher, watch, type Watched } from "../support/rig.js";
import { seededRandom } from "../../dist/internal/tuning.js";

type Made = (message: number, options: CallOptions) => unknown;
interface Rig {
  /** What the consumer told the broker, in order: "ack 1", "nack 2 why", "release 3", "extend 4", "error 5 why". */
  readonly told: string[];
  readonly ended: Watched<void>;
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A consumer whose answers are noted. */
function consuming(
  source: MessageSource<number>,
  call: Made,
  clock: ManualClock,
  options: Partial<ConsumeOptions<number, unknown>> = {},
): Rig {
  const told: string[] = [];
  const ended = watch(
    consume<number, unknown>(source, call, {
      ack: (message) => void told.push(`ack ${message}`),
      nack: (message, error) => void told.push(`nack ${message} ${textOf(error)}`),
      release: (message) => void told.push(`release ${message}`),
      onError: (error, message) => void told.push(`error ${message} ${textOf(error)}`),
      clock,
      ...options,
    }),
  );
  return { told, ended };
}

/** Counts what was read, and notes whether it was closed. */
function counted(length: number): AsyncIterable<number> & { read: number; isClosed: boolean } {
  const source = {
    read: 0,
    isClosed: false,
    async *[Symbol.asyncIterator]() {
      try {
        while (source.read < length) yield source.read++;
      } finally {
        source.isClosed = true;
      }
    },
  };
  return source;
}

const said = (what: string, messages: readonly number[]): string[] => messages.map((message) => `${what} ${message}`);
const forever = new Promise<never>(() => undefined);

// What it does with a message

test("each message is acknowledged by its own outcome, as soon as it is known", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, concurrency: 2 });
  const { told, ended } = consuming(counted(4), batcher, clock);
  await clock.settle();
  assert.deepEqual([runs.length, told], [2, []]);
  await runs[1]!.finish([2, new Error("bad")]);
  assert.deepEqual(told, ["ack 2", "nack 3 bad"]);
  await runs[0]!.finish();
  assert.deepEqual(told.slice(2), ["ack 0", "ack 1"]);
  assert.equal(ended.status, "fulfilled");
});

test("an acknowledgement gets the result", async () => {
  const results: unknown[] = [];
  const clock = manualClock();
  const ack = (message: number, result: unknown): void => void results.push([message, result]);
  consuming([1, 2], async (message) => 10 * message, clock, { ack });
  await clock.settle();
  assert.deepEqual(results, [[1, 10], [2, 20]]); // prettier-ignore
});

test("a call that throws is one that failed", async () => {
  const clock = manualClock();
  const call = (message: number): number => {
    if (message === 1) throw new Error("no");
    return message;
  };
  const { told, ended } = consuming([0, 1, 2], call, clock);
  await clock.settle();
  assert.deepEqual([told.toSorted(), ended.status], [["ack 0", "ack 2", "nack 1 no"], "fulfilled"]);
});

test("equal messages share a place and an outcome, also a failure, and each is answered", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 8, dedupeKey: (n) => n % 3 });
  const { told } = consuming([9, 0, 3, 1, 4, 2], batcher, clock);
  await clock.settle();
  assert.deepEqual([runs[0]!.items, told], [[9, 1, 2], []]);
  await runs[0]!.finish([0, new Error("bad"), 2]);
  assert.deepEqual(told.toSorted(), ["ack 0", "ack 2", "ack 3", "ack 9", "nack 1 bad", "nack 4 bad"]);
});

test("messages of one order key run in the order in which they were read", async () => {
  const { batcher, clock, finishAll, batches } = timedBatcher({
    maxBatchSize: 7,
    concurrency: 3,
    orderKey: (n) => n % 5,
  });
  const { ended } = consuming(counted(500), batcher, clock);
  await finishAll();
  assert.equal(ended.status, "fulfilled");
  for (const key of numbers(5)) {
    const ran = batches()
      .flat()
      .filter((n) => n % 5 === key);
    assert.deepEqual(
      ran,
      numbers(100).map((n) => 5 * n + key),
    );
  }
});

test("a call that never ends is given up with runTimeoutMs; the others go on", async () => {
  const { batcher, clock } = heldBatcher({ maxBatchSize: 1, concurrency: 2, runTimeoutMs: 1000 });
  const call = (message: number): unknown => (message === 3 ? batcher(message) : message);
  const { told, ended } = consuming(counted(6), call, clock);
  await clock.settle();
  assert.deepEqual(told, said("ack", [0, 1, 2, 4, 5]));
  await clock.advanceAsync(1000);
  assert.match(told.at(-1)!, /^nack 3 .*1000 ms/);
  assert.equal(ended.status, "fulfilled");
});

// How far it reads

for (const [what, options, expected] of [
  ["twice what is in flight", { maxBatchSize: 4, concurrency: 1 }, 8],
  ["twice what is in flight, of several batches", { maxBatchSize: 4, concurrency: 3 }, 24],
  ["1000", { maxBatchSize: 600, concurrency: 1 }, 1000],
  ["1000 where a batch has no bound", { maxBatchSize: Infinity, concurrency: 1 }, 1000],
  ["1000 where the batches in flight have no bound", { maxBatchSize: 4, concurrency: Infinity }, 1000],
] as const)
  test(`without prefetch it reads no further than ${what}`, async () => {
    const { batcher, clock, runs } = heldBatcher(options);
    const source = counted(5000);
    const { told } = consuming(source, batcher, clock);
    await clock.settle();
    assert.equal(source.read, expected);
    await runs[0]!.finish();
    assert.equal(source.read, expected + told.length);
  });

test("where the number of batches in flight is learned, it reads for those of now and one more", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 10, concurrency: undefined });
  const source = counted(5000);
  consuming(source, batcher, clock);
  await clock.settle();
  assert.equal(source.read, 20 * (runs.length + 1));
});

test("prefetch bounds the messages that are read and not yet answered, the answers under way with them", async () => {
  const clock = manualClock();
  const source = counted(100);
  const answers: (() => void)[] = [];
  const ack = (): Promise<void> => new Promise((resolve) => answers.push(resolve));
  const { ended } = consuming(source, async (message) => message, clock, { prefetch: 3, ack });
  await clock.settle();
  assert.deepEqual([source.read, answers.length], [3, 3]);
  for (let answered = 0; ended.status === "pending"; answered++) {
    assert.ok(source.read <= answered + 3);
    answers.shift()!();
    await clock.settle();
  }
  assert.equal(source.read, 100);
});

test("a function is asked for as many messages as there is room for, and not again before some are answered", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 4 });
  const rooms: number[] = [];
  let next = 0;
  const read = async (room: number): Promise<number[]> => {
    rooms.push(room);
    return numbers(Math.min(room, 5), (next += 5) - 5);
  };
  const { told } = consuming(read, batcher, clock);
  await clock.settle();
  assert.deepEqual([rooms, batcher.pending.queued], [[8, 3], 4]);
  await runs[0]!.finish();
  assert.deepEqual([rooms, told], [[8, 3, 4], said("ack", [0, 1, 2, 3])]);
});

test("a function that has nothing, and says so at once, is asked again without keeping others from running", async () => {
  const clock = manualClock();
  let asked = 0;
  const stop = new AbortController();
  const read = async (): Promise<number[] | null> => {
    if (++asked === 50) stop.abort();
    return asked === 20 ? [7] : asked % 2 === 0 ? [] : null;
  };
  const { told, ended } = consuming(read, async (message) => message, clock, { signal: stop.signal });
  await clock.settle();
  assert.deepEqual([asked, told, ended.status], [50, ["ack 7"], "fulfilled"]);
});

// Backpressure

test("a full queue stops the reading; refused calls are made again, in order, and none is refused to the broker", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 4 });
  const source = counted(30);
  const { told, ended } = consuming(source, batcher, clock, { prefetch: 10 });
  await clock.settle();
  assert.equal(source.read, 6);
  for (let n = 0; ended.status === "pending"; n++) {
    assert.ok(source.read <= told.length + 10);
    await runs[n]?.finish();
    await clock.advanceAsync(1000);
  }
  assert.deepEqual([told, batches().flat()], [said("ack", numbers(30)), numbers(30)]);
});

test("a call that is refused for its expected latency is made again", async () => {
  const clock = manualClock();
  let refusals = 3;
  const call = async (message: number): Promise<number> => {
    if (refusals-- > 0) throw new BatcherError("QUEUE_FULL", "too late", { expectedMs: 900 });
    return message;
  };
  const { told } = consuming([1], call, clock);
  await clock.advanceAsync(299);
  assert.deepEqual(told, []);
  await clock.advanceAsync(1);
  assert.deepEqual(told, ["ack 1"]);
});

test("an error that asks for a pause is waited for, with nothing read meanwhile", async () => {
  const clock = manualClock();
  const calls: string[] = [];
  const source = counted(5);
  const call = async (message: number): Promise<number> => {
    calls.push(`${message} at ${clock.now()}`);
    if (message === 1 && clock.now() < 2000) throw Object.assign(new Error("429"), { retryAfterMs: 2000 });
    return message;
  };
  const { told, ended } = consuming(source, call, clock, { prefetch: 2 });
  await clock.advanceAsync(1999);
  assert.ok(source.read <= 3);
  await clock.advanceAsync(1);
  assert.deepEqual([told.filter((each) => !each.startsWith("ack")), ended.status], [[], "fulfilled"]);
  assert.deepEqual([calls.filter((each) => each.startsWith("1 ")), told.length], [["1 at 0", "1 at 2000"], 5]);
});

test("messages whose batch failed come alone when they are delivered again, unless the service failed", async () => {
  for (const [error, runs] of [
    [() => new Error("poison"), [[0, 1, 2, 3], [0], [1], [2], [3]]],
    [
      () => Object.assign(new Error("down"), { code: "ECONNREFUSED" }),
      [
        [0, 1, 2, 3],
        [0, 1, 2, 3],
      ],
    ],
  ] as const) {
    const clock = manualClock();
    const seen: number[][] = [];
    const batcher = createBatcher(
      async (items: number[]) => {
        seen.push(items);
        if (items.includes(2)) throw error();
        return items;
      },
      { clock, maxBatchSize: 4, concurrency: 1 },
    );
    let nacked = (): void => undefined;
    const source = async function* (): AsyncGenerator<number> {
      yield* numbers(4);
      await new Promise<void>((resolve) => (nacked = resolve));
      yield* numbers(4);
    };
    const { told } = consuming(source(), batcher, clock);
    await clock.advanceAsync(1000);
    assert.equal(told.length, 4);
    nacked();
    await clock.advanceAsync(1000);
    assert.deepEqual(seen, runs);
    assert.equal(told.filter((each) => each.startsWith("ack")).length, runs.length === 5 ? 3 : 0);
  }
});

test("an outage of the workers is waited for; a message whose own batch crashed is refused", async () => {
  const clock = manualClock();
  const call = async (message: number): Promise<number> => {
    if (message === 1) throw new BatcherError("WORKER_CRASHED", "killed");
    if (clock.now() < 5000) throw new BatcherError("WORKER_CRASHED", "later", { restartInMs: 5000 - clock.now() });
    return message;
  };
  const { told } = consuming([0, 1, 2], call, clock);
  await clock.advanceAsync(4999);
  assert.deepEqual(told, ["nack 1 killed"]);
  await clock.advanceAsync(1);
  assert.deepEqual(told, ["nack 1 killed", "ack 0", "ack 2"]);
});

test("a message that was asked to wait for more than five minutes is handed back, not refused", async () => {
  const clock = manualClock();
  const call = async (): Promise<never> => {
    throw Object.assign(new Error("429"), { retryAfterMs: 100_000 });
  };
  const { told } = consuming([1], call, clock);
  await clock.advanceAsync(299_999);
  assert.deepEqual(told, []);
  await clock.advanceAsync(1);
  assert.deepEqual(told, ["release 1"]);
});

// Leases

test("leases of messages that wait or run are extended until they are answered, each in time", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
  const extended = new Map<number, number[]>();
  const extend = (message: number): void => {
    extended.set(message, [...(extended.get(message) ?? []), clock.now()]);
  };
  const { told, ended } = consuming(counted(2), batcher, clock, { leaseMs: 3000, extend });
  await clock.advanceAsync(10_000);
  await runs[0]!.finish();
  await clock.advanceAsync(10_000);
  await runs[1]!.finish();
  assert.deepEqual([told, ended.status], [["ack 0", "ack 1"], "fulfilled"]);
  for (const [message, endAtMs] of [
    [0, 10_000],
    [1, 20_000],
  ] as const) {
    // prettier-ignore
    const moments = [0, ...extended.get(message)!, endAtMs];
    const gaps = moments.slice(1).map((atMs, i) => atMs - moments[i]!);
    assert.ok(Math.max(...gaps) <= 2000 && Math.min(...gaps.slice(0, -1)) > 1000, `message ${message}: ${gaps.join()}`);
  }
  await clock.advanceAsync(10_000);
  assert.equal(clock.pending, 0);
});

test("a message that is soon done costs no extension", async () => {
  const { batcher, clock, finishAll } = timedBatcher({ maxBatchSize: 10, fixedMs: 900 });
  const extended: number[] = [];
  const extend = (message: number): void => void extended.push(message);
  consuming(counted(100), batcher, clock, { prefetch: 10, leaseMs: 3000, extend });
  await finishAll();
  assert.deepEqual(extended, []);
});

test("an extension that fails is reported, and tried again before the lease runs out", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const moments: number[] = [];
  const extend = async (): Promise<void> => {
    moments.push(clock.now());
    if (moments.length === 1) throw new Error("lost");
  };
  const { told } = consuming([1], batcher, clock, { leaseMs: 3000, extend });
  await clock.advanceAsync(5000);
  await runs[0]!.finish();
  assert.deepEqual(
    [moments, told],
    [
      [2000, 3000, 5000],
      ["error 1 lost", "ack 1"],
    ],
  );
});

test("an answer waits for the extension under way, which would take it back, but no longer than a lease", async () => {
  const { batcher, clock, runs } = heldBatcher({ concurrency: 2, maxBatchSize: 1 });
  const done: (() => void)[] = [];
  const extend = (message: number): Promise<void> =>
    message === 1 ? forever : new Promise((resolve) => done.push(resolve));
  const { told, ended } = consuming([0, 1], batcher, clock, { leaseMs: 3000, extend });
  await clock.advanceAsync(2000);
  for (const run of runs) await run.finish();
  assert.deepEqual(told, []);
  done[0]!();
  await clock.settle();
  assert.deepEqual(told, ["ack 0"]);
  await clock.advanceAsync(3000);
  assert.deepEqual([told, ended.status], [["ack 0", "ack 1"], "fulfilled"]);
});

// Answers that fail

test("what ack and nack throw is reported, and stops nobody", async () => {
  const clock = manualClock();
  const call = async (message: number): Promise<number> => {
    if (message % 2 === 1) throw new Error("bad");
    return message;
  };
  const { told, ended } = consuming(counted(6), call, clock, {
    ack: (message) => {
      if (message === 0) throw new Error("connection lost");
      return message === 2 ? Promise.reject(new Error("no such message")) : undefined;
    },
    nack: async (message) => {
      if (message === 3) throw new Error("timed out");
    },
  });
  await clock.settle();
  const expected = ["error 0 connection lost", "error 2 no such message", "error 3 timed out"];
  assert.deepEqual([told.toSorted(), ended.status], [expected, "fulfilled"]);
});

test("without onError the first failed answer is printed; an onError that throws stops nobody", async (t) => {
  const printed: string[] = [];
  t.mock.method(console, "warn", (...words: unknown[]) => void printed.push(words.map(textOf).join(" ")));
  const ack = (): never => {
    throw new Error("lost");
  };
  const onError = (): never => {
    throw new Error("my own");
  };
  for (const [options, expected] of [
    [{ ack, onError: undefined }, "consume: an answer to the broker failed: lost"],
    [{ ack, onError }, "consume: onError threw: my own"],
  ] as const) {
    const clock = manualClock();
    const { ended } = consuming(counted(5), async (message) => message, clock, options);
    await clock.settle();
    assert.deepEqual([ended.status, printed.splice(0)], ["fulfilled", [expected]]);
  }
});

test("an answer that hangs is given up after a lease, reported, and its place is free again", async () => {
  const clock = manualClock();
  const source = counted(4);
  const { told, ended } = consuming(source, async (message) => message, clock, {
    prefetch: 2,
    leaseMs: 3000,
    ack: (message) => (message < 2 ? forever : undefined),
  });
  await clock.advanceAsync(3000);
  assert.deepEqual([source.read, told], [2, []]);
  await clock.advanceAsync(1000);
  assert.deepEqual([source.read, ended.status], [4, "fulfilled"]);
  assert.deepEqual(told, [0, 1].map((n) => `error ${n} The answer to a message took longer than its lease (leaseMs 3000).`)); // prettier-ignore
});

// The end

test("an abort hands back what waits, finishes what runs, closes the source, and then resolves", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 3, onQueueFull: "wait" });
  const source = counted(100);
  const stop = new AbortController();
  const { told, ended } = consuming(source, batcher, clock, { prefetch: 7, signal: stop.signal });
  await clock.settle();
  stop.abort();
  await clock.settle();
  const running = runs[0]!.items;
  assert.deepEqual(told, said("release", numbers(7).filter((n) => !running.includes(n)))); // prettier-ignore
  assert.deepEqual([ended.status, source.isClosed, runs[0]!.context.signal.aborted], ["pending", true, false]);
  await runs[0]!.finish();
  assert.deepEqual([told.slice(-running.length), ended.status], [said("ack", running), "fulfilled"]);
  assert.deepEqual([runs.length, source.read, batcher.pending.queued], [1, 7, 0]);
});

test("an abort hands back a message that its batch puts back, and a refused one; a failed one is still refused", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, concurrency: 3 });
  const stop = new AbortController();
  const call = (message: number, options: CallOptions): unknown => {
    if (message < 6) return batcher(message, options);
    throw new BatcherError("QUEUE_FULL", "full");
  };
  const { told, ended } = consuming(counted(7), call, clock, { signal: stop.signal });
  await clock.settle();
  stop.abort();
  runs[0]!.context.putBack();
  await runs[0]!.fail(Object.assign(new Error("429"), { retryAfterMs: 1000 }));
  await runs[1]!.fail(new Error("bad"));
  await runs[2]!.fail(Object.assign(new Error("429"), { retryAfterMs: 1000 }));
  const released = said("release", [6, 0, 1, 4, 5]);
  assert.deepEqual(
    [told.toSorted(), ended.status],
    [[...released, "nack 2 bad", "nack 3 bad"].toSorted(), "fulfilled"],
  );
});

test("an abort hands back twins that wait together; a twin of someone else's call gets its result", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, dedupeKey: (n) => n % 10 });
  const other = watch(batcher(0));
  await clock.settle();
  const shared = watch(batcher(1));
  const stop = new AbortController();
  const { told, ended } = consuming([2, 12, 11], batcher, clock, { prefetch: 3, signal: stop.signal });
  await clock.settle();
  stop.abort();
  await clock.settle();
  assert.deepEqual(told.toSorted(), said("release", [12, 2]));
  await runs[0]!.finish();
  await runs[1]!.finish();
  assert.deepEqual([told.at(-1), ended.status, other.value, shared.value], ["ack 11", "fulfilled", 0, 1]);
});

test("a running twin whose partner leaves is finished although the consumer has stopped", async () => {
  const { batcher, clock, runs } = heldBatcher({ dedupe: "running", dedupeKey: (n) => n % 10 });
  const leaving = new AbortController();
  const other = watch(batcher(1, { signal: leaving.signal }));
  await clock.settle();
  const stop = new AbortController();
  const { told } = consuming([11], batcher, clock, { signal: stop.signal });
  await clock.settle();
  stop.abort();
  leaving.abort(new Error("left"));
  await clock.settle();
  assert.deepEqual([other.status, told], ["rejected", []]);
  await runs[0]!.finish();
  assert.deepEqual(told, ["ack 11"]);
});

test("a message that arrives after the abort is handed back", async () => {
  for (const asFunction of [true, false]) {
    const clock = manualClock();
    const arriving: ((message: number) => void)[] = [];
    const next = (): Promise<number> => new Promise((resolve) => arriving.push(resolve));
    const iterator = { next: async () => ({ done: false as const, value: await next() }) };
    const source = asFunction ? async () => [await next()] : { [Symbol.asyncIterator]: () => iterator };
    const stop = new AbortController();
    const calls: number[] = [];
    const call = (message: number): number => calls.push(message);
    const { told, ended } = consuming(source, call, clock, { signal: stop.signal });
    await clock.settle();
    stop.abort();
    await clock.settle();
    assert.equal(ended.status, "pending");
    arriving[0]!(7);
    await clock.settle();
    assert.deepEqual([told, calls, ended.status, arriving.length], [["release 7"], [], "fulfilled", 1]);
  }
});

test("a source that ends by the abort's own error ends the consumer well; another error is told", async () => {
  for (const [error, status] of [
    [new DOMException("The operation was aborted", "AbortError"), "fulfilled"],
    [new Error("connection lost"), "rejected"],
  ] as const) {
    const clock = manualClock();
    const stop = new AbortController();
    const read = (): Promise<number[]> =>
      new Promise((_, reject) => {
        stop.signal.addEventListener("abort", () => reject(error));
      });
    const { ended } = consuming(read, (message) => message, clock, { signal: stop.signal });
    await clock.settle();
    stop.abort();
    await clock.settle();
    assert.deepEqual([ended.status, ended.reason], [status, status === "rejected" ? error : undefined]);
  }
});

test("a source that never answers the abort is left after a lease", async () => {
  const clock = manualClock();
  const stop = new AbortController();
  const source = { [Symbol.asyncIterator]: () => ({ next: () => forever, return: () => forever }) };
  const { ended } = consuming(source, (message) => message, clock, { signal: stop.signal, leaseMs: 3000 });
  await clock.advanceAsync(10_000);
  stop.abort();
  await clock.advanceAsync(2999);
  assert.equal(ended.status, "pending");
  await clock.advanceAsync(1);
  assert.equal(ended.status, "fulfilled");
});

test("a signal that has aborted before reads nothing", async () => {
  const clock = manualClock();
  const source = counted(3);
  const { told, ended } = consuming(source, (message) => message, clock, { signal: AbortSignal.abort() });
  await clock.settle();
  assert.deepEqual([source.read, told, ended.status], [0, [], "fulfilled"]);
});

test("a batcher that is closed ends the consumer with CLOSED: its calls finish, and the next messages are handed back", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
  const { told, ended } = consuming(counted(100), batcher, clock, { prefetch: 2 });
  await clock.settle();
  void batcher.close();
  await runs[0]!.finish();
  await runs[1]!.finish();
  assert.deepEqual(told, ["ack 0", "release 2", "ack 1"]);
  assert.equal((ended.reason as BatcherError).code, "CLOSED");
});

for (const [what, source] of [
  [
    "throws from next",
    { [Symbol.iterator]: () => ({ next: (n = 0) => (n === 0 ? assert.fail("broken") : n) }) as never },
  ],
  ["rejects", { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("broken")) }) }],
  ["is a function that throws", () => assert.fail("broken")],
] as const)
  // prettier-ignore
  test(`a source that ${what} ends the consumer with its error`, async () => {
    const clock = manualClock();
    const { told, ended } = consuming(source as MessageSource<number>, (message) => message, clock);
    await clock.settle();
    assert.deepEqual([told, ended.status, (ended.reason as Error).message], [[], "rejected", "broken"]);
  });

test("a source that throws in the middle: what was read is finished first", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2 });
  async function* source() {
    yield* numbers(3);
    throw new Error("broken");
  }
  const { told, ended } = consuming(source(), batcher, clock);
  await clock.settle();
  assert.deepEqual([told, ended.status], [[], "pending"]);
  for (let n = 0; n < 2; n++) await runs[n]!.finish();
  assert.deepEqual([told, ended.status], [said("ack", numbers(3)), "rejected"]);
  assert.equal((ended.reason as Error).message, "broken");
});

test("a function that reads no list of messages ends the consumer with a TypeError", async () => {
  const clock = manualClock();
  const { ended } = consuming((async () => 5) as never, (message) => message, clock);
  await clock.settle();
  assert.ok(ended.reason instanceof TypeError);
});

test("a source without messages, and one that ends at once after some", async () => {
  for (const length of [0, 1]) {
    const clock = manualClock();
    const { told, ended } = consuming(counted(length), (message) => message, clock);
    await clock.settle();
    assert.deepEqual([told.length, ended.status], [length, "fulfilled"]);
  }
});

test("a wrong argument is refused at once, with what it got", async () => {
  const right = { ack: () => undefined, nack: () => undefined };
  const refused = (messages: unknown, call: unknown, options: unknown): Promise<void> =>
    consume(messages as number[], call as Made, options as never);
  for (const [args, message] of [
    [["abc", () => 1, right], 'TypeError: messages must be an iterable or async iterable, got "abc"'],
    [[undefined, () => 1, right], "TypeError: messages must be an iterable or async iterable, got undefined"],
    [[[], "call", right], 'TypeError: call must be a function, got "call"'],
    [[[], () => 1, undefined], "TypeError: options must be an object, got undefined"],
    [[[], () => 1, { ack: right.ack }], "TypeError: nack must be a function, got undefined"],
    [[[], () => 1, { ...right, ack: "yes" }], 'TypeError: ack must be a function, got "yes"'],
    [[[], () => 1, { ...right, prefetch: 0 }], "RangeError: prefetch must be an integer >= 1, got 0"],
    [[[], () => 1, { ...right, prefetch: Infinity }], "RangeError: prefetch must be an integer >= 1, got Infinity"],
    [[[], () => 1, { ...right, leaseMs: 0 }], "RangeError: leaseMs must be a number of milliseconds > 0, got 0"],
    [[[], () => 1, { ...right, signal: 1 }], "TypeError: signal must be an AbortSignal, got 1"],
    [[[], () => 1, { ...right, nak: 1 }], "TypeError: unknown option nak; did you mean nack?"],
  ] as const) {
    const [messages, call, options] = args;
    const error = await refused(messages, call, options).then(
      () => "none",
      (thrown: unknown) => String(thrown),
    );
    assert.equal(error, message);
  }
});

// Order keys over failures

const pause = (retryAfterMs: number): Error => Object.assign(new Error("429"), { retryAfterMs });

for (const [what, options, ran] of [
  ["whose batch is refused", {}, [0, 1, 2, 3, 4, 5]],
  ["whose batch is refused, in one of two slots", { concurrency: 2 }, [0, 1, 2, 3, 4, 5]],
  ["that a bisection finds refused", { onBatchError: "bisect", maxBatchSize: 4 }, [0, 1, 2, 3, 4, 5]],
] as const)
  for (const retryAfterMs of [0, 100])
    test(`messages of an order key wait behind one ${what} (retryAfterMs ${retryAfterMs}), also through a function`, async () => {
      for (const wraps of [false, true]) {
        const clock = manualClock();
        const seen: number[] = [];
        let refusals = 2;
        const run = async (items: number[]): Promise<number[]> => {
          if (items.includes(1) && refusals > 0) {
            if (items.length === 4 || --refusals >= 0)
              throw items.length === 4 ? new Error("400") : pause(retryAfterMs);
          }
          seen.push(...items);
          return items;
        };
        const batcher = createBatcher(run, {
          clock,
          maxBatchSize: 1,
          concurrency: 1,
          orderKey: () => "key",
          ...options,
        });
        const { told, ended } = consuming(numbers(6), wraps ? (n, made) => batcher(n, made) : batcher, clock);
        await clock.advanceAsync(1000);
        assert.deepEqual([seen, told, ended.status], [ran, said("ack", ran), "fulfilled"]);
      }
    });

test("with onNack the later messages of a key are handed back behind one that failed; those of other keys go on", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, orderKey: (n) => n % 2 });
  const { told } = consuming(numbers(8), batcher, clock, { onNack: "handBack", prefetch: 8 });
  await clock.settle();
  await runs[0]!.finish([new Error("bad"), 1]);
  assert.deepEqual(told, ["ack 1", "nack 0 bad", "release 2", "release 4", "release 6"]);
  for (const run of [1, 2]) await runs[run]!.finish();
  assert.deepEqual(told.slice(5), ["ack 3", "ack 5", "ack 7"]);
});

test("messages behind one that was refused for five minutes are handed back with it", async () => {
  const clock = manualClock();
  const run = async (items: number[]): Promise<number[]> => {
    if (items[0]! < 3) throw pause(100_000);
    return items;
  };
  const batcher = createBatcher(run, { clock, maxBatchSize: 1, concurrency: 1, orderKey: (n) => n % 3 });
  const { told } = consuming([0, 3, 6], batcher, clock, { prefetch: 3 });
  await clock.advanceAsync(299_999);
  assert.deepEqual(told, []);
  await clock.advanceAsync(1);
  assert.deepEqual(told, ["release 0", "release 3", "release 6"]);
});

test("seeded: each key takes effect in order over refusals, full queues, bisections and puts back; with onNack over failures too", async () => {
  for (const seed of seedsTo(400, 4)) await orderSeeded(seed);
});

/** A broker that delivers the messages of a key in order, and none while one of them is out, as a FIFO queue of SQS does. */
async function orderSeeded(seed: number): Promise<void> {
  const next = seededRandom(seed);
  const clock = virtualClock();
  const keys = 3;
  const perKey = 20;
  const handsBack = next() < 0.5;
  const waiting = numbers(keys).map((key) => numbers(perKey).map((n) => n * keys + key));
  const out = numbers(keys).map(() => new Set<number>());
  const effects: number[][] = numbers(keys).map(() => []);
  const isBisected = next() < 0.5;
  const run = async (items: number[], context: BatchContext): Promise<number[]> => {
    const failure = next() < 0.3 ? next() : 1;
    await clock.sleep(next() * 20);
    if (failure < 0.2) throw pause(next() < 0.3 ? 0 : next() * 100);
    if (failure < 0.4) {
      (context as unknown as { putBack(): void }).putBack();
      throw pause(next() < 0.3 ? 0 : next() * 100);
    }
    if (failure < 0.7 && (handsBack || items.length > 1)) throw new Error(isBisected ? "400" : "bad");
    for (const item of items) effects[item % keys]!.push(item);
    return items;
  };
  const timed = next() < 0.3 && handsBack;
  const batcher = createBatcher(run, {
    clock,
    maxBatchSize: isBisected || handsBack ? 1 + Math.floor(next() * 4) : 1,
    concurrency: 1 + Math.floor(next() * 3),
    maxQueueSize: 2 + Math.floor(next() * 10),
    onQueueFull: next() < 0.5 ? "wait" : "reject",
    orderKey: (n) => n % keys,
    timeoutMs: timed ? 30 + next() * 100 : undefined,
    refuseLate: timed ? 0.7 : undefined,
    weigh: timed ? (n) => 1 + (n % 7) * 5 : undefined,
    dedupeKey: next() < 0.3 ? (n) => n : undefined,
    onBatchError: isBisected ? "bisect" : "fail",
  });
  const stop = new AbortController();
  const back = (message: number): void => {
    const key = message % keys;
    out[key]!.delete(message);
    waiting[key]!.push(message);
    waiting[key]!.sort((a, b) => a - b);
  };
  const read = async (room: number): Promise<number[]> => {
    await clock.sleep(1 + next() * 10);
    const portion: number[] = [];
    for (const [key, messages] of waiting.entries()) {
      if (out[key]!.size > 0) continue;
      const taken = messages.splice(0, Math.min(room - portion.length, Math.ceil(next() * 8)));
      for (const message of taken) out[key]!.add(message);
      portion.push(...taken);
    }
    if (waiting.every((messages) => messages.length === 0) && out.every(({ size }) => size === 0)) stop.abort();
    return portion;
  };
  const done = consume(read, batcher, {
    clock,
    signal: stop.signal,
    onNack: handsBack ? "handBack" : "continue",
    ack: (message) => void out[message % keys]!.delete(message),
    nack: async (message) => {
      if (!handsBack) assert.fail(`seed ${seed}: nack ${message}`);
      await clock.sleep(next() * 50);
      back(message);
    },
    release: back,
  });
  let isEnded = false;
  void done.finally(() => (isEnded = true));
  for (let turn = 0; !isEnded && turn < 2000; turn++) await clock.sleep(100);
  assert.ok(isEnded, `seed ${seed}: it never ends`);
  for (const [key, ran] of effects.entries())
    // One whose deadline came while it ran takes effect again.
    assert.deepEqual([...new Set(ran)], numbers(perKey).map((n) => n * keys + key), `seed ${seed}, key ${key}`); // prettier-ignore
}

// All of it at once, against a broker that delivers again what is not acknowledged in time

test("seeded: nothing is lost, nothing is acknowledged before its result, nothing of a live consumer is delivered twice", async () => {
  for (const seed of seedsTo(300, 2)) await consumeSeeded(seed);
});

async function consumeSeeded(seed: number): Promise<void> {
  const next = seededRandom(seed);
  const clock = virtualClock();
  const count = 150;
  const leaseMs = 2000;
  const queue = numbers(count);
  const leasedUntil = new Map<number, number>();
  const done = new Set<number>();
  const dead = new Set<number>();
  const attempts = new Map<number, number>();
  let answeredLate = 0;
  const owned = (message: number): void => {
    if (!leasedUntil.has(message)) answeredLate++;
  };
  const requeue = (message: number): void => {
    if (leasedUntil.delete(message)) queue.push(message);
  };
  const results = new Set<number>();
  const runMs = 5 + next() * 2500;
  const run = async (items: number[]): Promise<number[]> => {
    await clock.sleep(runMs);
    return items;
  };
  const batcher = createBatcher(run, {
    clock,
    maxBatchSize: 1 + Math.floor(next() * 8),
    concurrency: 1 + Math.floor(next() * 3),
    maxQueueSize: 4 + Math.floor(next() * 20),
    onQueueFull: next() < 0.5 ? "wait" : "reject",
  });
  const isBad = (message: number): boolean => message % 17 === 3;
  const call = async (message: number, options: CallOptions): Promise<number> => {
    const result = await batcher(message, options);
    if (isBad(message)) throw new Error("bad");
    results.add(message);
    return result;
  };
  const late = (): Promise<void> => clock.sleep(next() * 50);
  for (let session = 0; done.size + dead.size < count; session++) {
    assert.ok(session < 1000, `seed ${seed}: ${done.size} done after ${session} sessions`);
    const stop = new AbortController();
    clock.after(500 + next() * 20_000, () => stop.abort());
    const read = async (room: number): Promise<number[]> => {
      await clock.sleep(queue.length > 0 ? next() * 20 : 300);
      const portion = queue.splice(0, Math.ceil(next() * room));
      for (const message of portion) leasedUntil.set(message, clock.now() + leaseMs);
      if (portion.length === 0 && leasedUntil.size === 0) stop.abort();
      return portion;
    };
    const options: ConsumeOptions<number, number> = {
      leaseMs,
      clock,
      signal: stop.signal,
      ack: async (message) => {
        assert.ok(results.has(message), `seed ${seed}: ${message} was acknowledged before its result`);
        await late();
        owned(message);
        leasedUntil.delete(message);
        done.add(message);
      },
      nack: async (message, error) => {
        assert.ok(isBad(message) && textOf(error) === "bad", `seed ${seed}: nack ${message} ${textOf(error)}`);
        await late();
        owned(message);
        attempts.set(message, (attempts.get(message) ?? 0) + 1);
        if (attempts.get(message) === 3) {
          leasedUntil.delete(message);
          dead.add(message);
        } else requeue(message);
      },
      release: async (message) => {
        await late();
        owned(message);
        requeue(message);
      },
      extend: async (message) => {
        await late();
        owned(message);
        leasedUntil.set(message, clock.now() + leaseMs);
      },
      onError: (error) => assert.fail(`seed ${seed}: ${textOf(error)}`),
    };
    const expiry = (): void => {
      assert.ok(clock.now() < 1e8, `seed ${seed}: it never ends`);
      for (const [message, endAtMs] of leasedUntil) if (endAtMs <= clock.now()) requeue(message);
      if (!stop.signal.aborted || leasedUntil.size > 0) clock.after(100, expiry);
    };
    expiry();
    await consume(read, call, options);
    assert.equal(leasedUntil.size, 0, `seed ${seed}: the consumer left messages behind`);
  }
  assert.equal(answeredLate, 0, `seed ${seed}: a lease ran out while its consumer lived`);
  assert.deepEqual([...dead].toSorted((a, b) => a - b), numbers(count).filter(isBad)); // prettier-ignore
}
