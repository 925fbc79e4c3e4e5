import assert from "node:assert/strict";
import { test } from "node:test";
import { BaseRunHandle } from "../../dist/core/contract/base-run-handle.js";
import { type RunHandle, runHandle, wrapExecutor } from "../../dist/executors.js";
import { createBatcher, greedy } from "../../dist/index.js";
import { pipeline, workerProcess } from "../../dist/node/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { endsOf, statuses, watch, watchAll } from "../support/rig.js";
import type probe from "./probe-worker.js";

const handle = (): RunHandle => runHandle({ size: 1 });

/** A stage whose batches end when the test says so. */
class Gate {
  readonly entered: string[] = [];
  #waiting: (() => void)[] = [];

  readonly run = async (items: string[]): Promise<string[]> => {
    this.entered.push(items.join());
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return items;
  };

  async open(): Promise<void> {
    this.#waiting.shift()?.();
    await turn();
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("stages overlap, each with one batch at a time", async () => {
  const [before, middle, after] = [new Gate(), new Gate(), new Gate()];
  const executor = pipeline({ before: before.run, executor: middle.run, after: after.run });
  const entered = (): number[] => [before, middle, after].map((gate) => gate.entered.length);
  const runs = ["a", "b", "c"].map((item) => executor.run([item], handle()));
  await turn();
  assert.deepEqual(entered(), [1, 0, 0]);
  await before.open();
  assert.deepEqual(entered(), [2, 1, 0]);
  await before.open();
  assert.deepEqual(entered(), [3, 1, 0]);
  await middle.open();
  assert.deepEqual(entered(), [3, 2, 1]);
  for (let i = 0; i < 3; i++) for (const gate of [before, middle, after]) await gate.open();
  assert.deepEqual(await Promise.all(runs), [["a"], ["b"], ["c"]]);
});

test("batches leave in the order they came, though the middle finishes out of order", async () => {
  const left: number[] = [];
  const executor = pipeline({
    executor: {
      slots: 3,
      ready: () => Promise.resolve(),
      close: () => Promise.resolve(),
      run: async ([ms]: number[]) => {
        await new Promise((resolve) => setTimeout(resolve, ms));
        return [ms!];
      },
    },
    after: (items: number[]) => {
      left.push(...items);
      return items;
    },
  });
  assert.equal(executor.slots, 4);
  await Promise.all([30, 1, 10].map((ms) => executor.run([ms], handle())));
  assert.deepEqual(left, [30, 1, 10]);
});

test("a batch that fails in a stage fails alone", async () => {
  await using call = createBatcher(
    pipeline({
      before: (items: number[]) => {
        if (items.includes(2)) throw new Error("not prepared");
        return items;
      },
      executor: (items: number[]) => items.map((item) => item * 10),
    }),
    { maxBatchSize: 1, policy: greedy() },
  );
  const [first, failed, third] = endsOf(await call.settle([1, 2, 3]));
  assert.deepEqual([first, failed.message, third], [10, "not prepared", 30]);
});

test("an Error in a place ends the way of that item only", async () => {
  const seen: number[][] = [];
  const executor = pipeline({
    before: (items: number[]) => items.map((item) => (item < 0 ? new RangeError(`negative: ${item}`) : item)),
    executor: (items: number[]) => {
      seen.push(items);
      return items.map((item) => (item === 2 ? new Error("two") : item * item));
    },
    after: (squares: number[]) => squares.map(String),
  });
  const results = (await executor.run([1, -1, 2, 3], handle())) as unknown[];
  assert.deepEqual(seen, [[1, 2, 3]]);
  assert.deepEqual([results[0], results[3]], ["1", "9"]);
  assert.deepEqual([(results[1] as Error).message, (results[2] as Error).message], ["negative: -1", "two"]);
});

test("a stage that loses a result is named", async () => {
  const executor = pipeline({ executor: (items: number[]) => items.slice(1) });
  await assert.rejects(executor.run([1, 2], handle()), {
    code: "RESULT_COUNT",
    message: /the executor stage.*1 results for 2/,
  });
});

test("a worker process stands in the middle, and closes with the pipeline", async () => {
  const executor = workerProcess<typeof probe>(new URL("./probe-worker.js", import.meta.url));
  const call = createBatcher(
    pipeline({
      before: (texts: string[]) => texts.map((text) => ({ do: "double" as const, n: Number(text) })),
      executor,
      after: (results: (number | string)[]) => results.map(String),
    }),
  );
  assert.deepEqual(await call.many(["1", "2", "3"]), ["2", "4", "6"]);
  await call.close();
  assert.deepEqual(executor.instances(), []);
});

test("maxInFlight caps the slots", () => {
  const executor = (items: number[]): number[] => items;
  assert.equal(pipeline({ before: executor, executor, after: executor }).slots, 3);
  assert.equal(pipeline({ before: executor, executor, after: executor, maxInFlight: 2 }).slots, 2);
});

test("the inner executor is notified that a run is given up, also after its callers have left", async () => {
  const heard: unknown[] = [];
  const inside = {
    slots: 1,
    ready: () => Promise.resolve(),
    run: (_items: string[], run: RunHandle) => {
      run.onAborted((reason) => heard.push(reason));
      return new Promise<string[]>(() => undefined);
    },
    close: () => Promise.resolve(),
  };
  let giveUp: ((reason: unknown) => void) | undefined;
  class Outer extends BaseRunHandle {
    override onAborted(listener: (reason: unknown) => void): () => void {
      giveUp = listener;
      return () => (giveUp = undefined);
    }
  }
  void pipeline({ before: (items: string[]) => items, executor: inside }).run(["a"], new Outer(1, 1));
  await turn();
  const error = new Error("past runTimeoutMs");
  giveUp?.(error);
  assert.deepEqual(heard, [error]);
});

test("what a stage asks of dispatch reaches the batcher: a pause, and one more run on the rate limit", async () => {
  const clock = manualClock();
  const executor = pipeline({
    before: (items: number[], context) => {
      if (context.attempt === 1) {
        context.pause(100);
        context.countRun();
      }
      return items;
    },
    executor: (items: number[]) => items,
  });
  const rateLimit = { runs: 3, perMs: 10_000 };
  const batcher = createBatcher(executor, { clock, policy: greedy(), maxBatchSize: 1, concurrency: 1, rateLimit });
  const attempts: number[] = [];
  batcher.subscribe(({ attempt }) => attempts.push(attempt));
  const calls = watchAll(batcher, [1, 2]);
  await clock.advanceAsync(99);
  assert.deepEqual(statuses(calls), ["fulfilled", "pending"], "the second waits for the pause");
  assert.deepEqual(attempts, [2]);
  await clock.advanceAsync(2);
  assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled"]);
  const third = watch(batcher(3));
  await clock.advanceAsync(1000);
  assert.equal(third.status, "pending", "four runs have been counted, of three that may be");
  await clock.advanceAsync(10_000);
  assert.equal(third.status, "fulfilled");
});

test("a wrapped executor keeps every property that a batcher asks for, and its own run, ready and close", async () => {
  const told: string[] = [];
  const inner = {
    slots: 3,
    prefetch: 1,
    reportsStart: true,
    ready: async () => void told.push("inner ready"),
    run: async (items: string[]) => items.map((item) => item.length),
    close: async () => void told.push("inner close"),
  };
  const wrapped = wrapExecutor(inner, {
    run: (items: number[]) => inner.run(items.map((item) => "x".repeat(item))),
    close: async () => void told.push("own close"),
  });
  const { slots, prefetch, reportsStart } = wrapped;
  assert.deepEqual({ slots, prefetch, reportsStart }, { slots: 3, prefetch: 1, reportsStart: true });
  const batcher = createBatcher(wrapped, { policy: greedy() });
  assert.deepEqual(await batcher.many([2, 5]), [2, 5]);
  await batcher.close();
  assert.deepEqual(told, ["inner ready", "own close"]);
});

test("an answer of a stage ends that item's way: later stages do not see it, nor count it", async () => {
  const seen: string[][] = [];
  const call = createBatcher(
    pipeline<string, string, string, string>({
      before: (items, { answer }) => {
        answer(1, "answered before");
        return items;
      },
      executor: async (items, { answer }) => {
        seen.push([...items]);
        answer(1, "answered in the middle");
        return items;
      },
      after: (items, { answer }) => {
        seen.push([...items]);
        assert.throws(() => answer(1, "nobody"), RangeError);
        return items.map((item) => `${item} to the end`);
      },
    }),
  );
  assert.deepEqual(await call.many(["a", "b", "c"]), ["a to the end", "answered before", "answered in the middle"]);
  assert.deepEqual(seen, [["a", "c"], ["a"]]);
  await call.close();
});

test("where a stage answers all, the later ones are not called; an answer after its stage has ended has no effect", async () => {
  let late: (() => void) | undefined;
  const call = createBatcher(
    pipeline<string, string, string, string>({
      before: (items, { answer }) => {
        late = () => answer(0, "late");
        if (items[0] === "all") for (const index of items.keys()) answer(index, "answered");
        return items;
      },
      executor: async (items) => {
        assert.notEqual(items[0], "all");
        late!();
        return items;
      },
    }),
  );
  assert.equal(await call("all"), "answered");
  assert.equal(await call("one"), "one");
  await call.close();
});

test("a stage that never ends for one batch is free for the next once that batch is given up", async () => {
  for (const stage of ["before", "after"] as const) {
    const clock = manualClock();
    const hangs = (items: string[]): Promise<string[]> =>
      items.includes("odd") ? new Promise(() => undefined) : Promise.resolve(items);
    const executor = pipeline<string>({ [stage]: hangs, executor: (items) => items });
    const call = createBatcher(executor, { clock, policy: greedy(), maxBatchSize: 1, runTimeoutMs: 100 });
    const calls = watchAll(call, ["odd", "good"]);
    await clock.advanceAsync(99);
    assert.deepEqual(statuses(calls), ["pending", "pending"], stage);
    await clock.advanceAsync(1);
    const later = watch(call("later"));
    await clock.advanceAsync(99);
    assert.deepEqual([calls[0]!.status, later.status], ["rejected", "fulfilled"], stage);
  }
});
