import assert from "node:assert/strict";
import { test } from "node:test";
import { type BatcherOptions, type CallOptions, createBatcher, greedy, type Policy } from "../dist/index.js";
import type { RunHandle } from "../dist/executors.js";
import { systemClock } from "../dist/core/runtime/runtime.js";
import { manualClock } from "../dist/testing/index.js";
import { assertCode, heldBatcher, statuses, watch, type Watched } from "./support/rig.js";

const echo = (items: number[]): number[] => items;

/** Every wrong value must be refused at construction, by name and with what it got. */
const wrongValues: Record<string, readonly unknown[]> = {
  maxBatchSize: [0, -1, 1.5, Number.NaN, -Infinity, "32", null, true, {}, [4]],
  maxWaitMs: [-1, Number.NaN, "5", null, true, {}],
  concurrency: [0, -2, 1.5, Number.NaN, "4", null, {}],
  maxQueueSize: [0, -1, 2.5, Number.NaN, "10", "automatic", null, {}],
  onQueueFull: ["drop", "", true, null, 1],
  overloadOrder: ["fifo", "", true, null, 1],
  maxBatchWeight: [-1, Number.NaN, "5", null],
  weigh: [5, "length", null, {}],
  batchWeight: ["max", "", true, null],
  timeoutMs: [-1, Number.NaN, "100", null, {}],
  runTimeoutMs: [-1, Number.NaN, "100", null, {}],
  policy: [{}, "greedy", greedy, null, 5, { decide: "now" }],
  onBatchError: ["retry", "", true, null],
  runOne: [5, "x", null, {}],
  shouldBisect: [true, "x", null, {}],
  maxBisectRuns: [-1, 1.5, Number.NaN, "3", null],
  groupKey: ["tenant", 5, null, {}],
  fairKey: ["tenant", 5, null, {}],
  shareOf: [1, "tenant", null, {}],
  orderKey: ["id", 5, null, {}],
  dedupeKey: ["id", true, null, {}],
  rateLimit: [
    5,
    "10/s",
    null,
    {},
    { perMs: 100 },
    { runs: 5 },
    { runs: 5, perMs: 0 },
    { runs: 5, perMs: -1 },
    { runs: 5, perMs: Number.NaN },
    { runs: 5, perMs: "1000" },
    { runs: 0, perMs: 100 },
    { runs: -1, perMs: 100 },
    { runs: "5", perMs: 100 },
    { items: Number.NaN, perMs: 100 },
    { items: -3, perMs: 100 },
    { weight: "1", perMs: 100 },
    [],
    [{ runs: 5, perMs: 100 }, { runs: 5 }],
  ],
  price: [5, "free", null, { perRun: "1" }, { perItem: Number.NaN }, { perWeight: {} }],
  name: [5, null, {}],
  clock: [5, null, {}, { now: 5, after: () => {} }, { now: () => 0 }],
};

for (const [option, values] of Object.entries(wrongValues)) {
  for (const value of values) {
    test(`${option}: ${show(value)} is refused at construction, by name and with what it got`, () => {
      // What an option needs beside it, so that only the wrong value is wrong.
      const beside = option === "maxBatchWeight" ? { weigh: () => 1 } : {};
      const options = { ...beside, [option]: value } as BatcherOptions<number, number>;
      assert.throws(
        () => createBatcher(echo, options),
        (error: unknown) => {
          assert.ok(error instanceof RangeError || error instanceof TypeError, String(error));
          assert.match(error.message, new RegExp(option));
          assert.match(error.message, /got /);
          return true;
        },
      );
    });
  }
}

test("a policy or concurrency by a word is refused with what there is", () => {
  assert.throws(() => createBatcher(echo, { policy: "fifo" as never }), {
    message: 'policy must be auto(), fixedWindow(), adaptive(), greedy() or an object with decide(view), got "fifo"',
  });
  assert.throws(() => createBatcher(echo, { concurrency: "auto" as never }), {
    message: 'concurrency must be an integer >= 1 (if it is left out, it is learned), got "auto"',
  });
});

for (const [what, value] of [
  ["a BigInt", 10n],
  ["a symbol", Symbol("size")],
  ["a circular object", circular()],
  ["an object whose toString throws", { toString: () => assert.fail("called") }],
] as const) {
  test(`${what} as maxBatchSize is a RangeError, not a crash of the message`, () => {
    assert.throws(() => createBatcher(echo, { maxBatchSize: value as never }), {
      name: "RangeError",
      message: /maxBatchSize/,
    });
  });
}

for (const run of [undefined, null, 5, "run", {}, [], { run: echo }, Promise.resolve(echo)]) {
  test(`${show(run)} is neither a batch function nor an executor: TypeError`, () => {
    assert.throws(() => createBatcher(run as never), { name: "TypeError", message: /function|[Ee]xecutor/ });
  });
}

for (const slots of [0, -1, 1.5, "2", Number.NaN, undefined]) {
  test(`an executor with ${show(slots)} slots is refused`, () => {
    const executor = { slots, ready: async () => {}, run: async (items: number[]) => items, close: async () => {} };
    assert.throws(
      () => createBatcher(executor as never),
      (error: unknown) => (error instanceof RangeError || error instanceof TypeError) && /slots/.test(error.message),
    );
  });
}

for (const options of [5, "fast", null, true]) {
  test(`options that are ${show(options)} are refused`, () => {
    assert.throws(() => createBatcher(echo, options as never), /options/i);
  });
}

for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty"]) {
  test(`${name} is not an option, though every object has one`, () => {
    const options = JSON.parse(`{ "${name}": 1 }`) as object;
    assert.throws(() => createBatcher(echo, options), { name: "TypeError", message: new RegExp(name) });
  });
}

test("maxBatchWeight without weigh is refused: nothing could be weighed", () => {
  assert.throws(() => createBatcher(echo, { maxBatchWeight: 10 }), { name: "RangeError", message: /weigh/ });
});

test("a refused construction leaves the policy free for another batcher", () => {
  const policy = greedy();
  assert.throws(() => createBatcher(echo, { policy, maxBatchSize: 0 }), RangeError);
  createBatcher(echo, { policy });
});

for (const [what, options] of [
  ["timeoutMs: -1", { timeoutMs: -1 }],
  ["timeoutMs: NaN", { timeoutMs: Number.NaN }],
  ['timeoutMs: "5"', { timeoutMs: "5" }],
  ['priority: "urgent"', { priority: "urgent" }],
  ["priority: 1", { priority: 1 }],
  ["signal: {}", { signal: {} }],
  ["signal: a controller", { signal: new AbortController() }],
  ["unknown option timeout; did you mean timeoutMs\\?: a misspelt name", { timeout: 3 }],
  ["unknown option constructor: an inherited name", { constructor: 3 }],
] as const) {
  test(`a call with ${what} is rejected with a message that names it, and never run`, async () => {
    const name = what.split(":")[0]!;
    for (const method of ["call", "many", "settle", "map"] as const) {
      const { batcher, clock, runs } = heldBatcher();
      const call = watch<unknown>(
        (async () => {
          if (method === "call") return batcher(1, options as CallOptions);
          if (method === "map") return batcher.map([1], options as never).next();
          return batcher[method]([1], options as never);
        })(),
      );
      await clock.settle();
      assert.ok(
        call.reason instanceof RangeError || call.reason instanceof TypeError,
        `${method}: ${String(call.reason)}`,
      );
      assert.match(call.reason.message, new RegExp(name), method);
      assert.equal(runs.length, 0, method);
    }
  });
}

test("a call never throws: its mistakes are rejections", async () => {
  const { batcher } = heldBatcher({
    weigh: () => {
      throw new Error("weigh bug");
    },
  });
  const promises = [batcher(1), batcher(1, { timeoutMs: -1 }), batcher(1, { priority: "urgent" as never })];
  for (const promise of promises) await assert.rejects(promise);
});

for (const graceMs of [-1, Number.NaN, "5"]) {
  test(`close({ graceMs: ${show(graceMs)} }) is refused by name`, async () => {
    const { batcher } = heldBatcher();
    await assert.rejects(async () => batcher.close({ graceMs: graceMs as number }), /graceMs/);
  });
}

for (const listener of [undefined, null, 5, {}]) {
  test(`subscribe(${show(listener)}) is a TypeError`, () => {
    assert.throws(() => heldBatcher().batcher.subscribe(listener as never), TypeError);
  });
}

test("map of what is not iterable is a TypeError, at the call or at the first result", async () => {
  for (const wrong of [undefined, null, 5, {}, "hello"]) {
    await assert.rejects(
      async () =>
        heldBatcher()
          .batcher.map(wrong as never)
          .next(),
      TypeError,
    );
  }
});

function circular(): object {
  const object: { self?: object } = {};
  object.self = object;
  return object;
}

function show(value: unknown): string {
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value === "number" || value === undefined) return String(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const name = value.constructor.name;
  return name === "Object" || name === "Array" ? JSON.stringify(value) : name;
}

const hostile = (name: string, error: object = new Error("hostile")): object =>
  Object.defineProperty(error, name, {
    get: () => {
      throw new Error("the getter threw");
    },
  });

test("results and errors whose properties throw settle every call and free the slot", async () => {
  const failing = [
    (items: number[]) => hostile("1", [...items]) as number[],
    () => Promise.reject(hostile("retryAfterMs") as Error),
    () => Promise.reject(hostile("itemIndex") as Error),
    () => Promise.reject(hostile("status") as Error),
    (items: number[]) => items.map(() => hostile("retryAfterMs") as Error),
  ];
  for (const [index, fail] of failing.entries()) {
    let isFirst = true;
    const batcher = createBatcher<number, number>(
      (items) => {
        if (!isFirst) return items;
        isFirst = false;
        return fail(items);
      },
      { policy: greedy(), concurrency: 1, onBatchError: index === 2 ? "bisect" : "fail" },
    );
    const outcomes = await batcher.settle([1, 2, 3]);
    assert.equal(outcomes.length, 3);
    assert.equal(await batcher(4), 4);
    assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
    await batcher.close();
  }
});

test("a listener of onAborted that throws takes nothing from the callers of a run that is given up", async (t) => {
  const warn = t.mock.method(console, "warn", () => undefined);
  const { batcher, clock, runs } = heldBatcher({ runTimeoutMs: 100 });
  const call = watch(batcher(1));
  await clock.settle();
  (runs[0]!.context as RunHandle).onAborted(() => {
    throw new Error("the listener threw");
  });
  await clock.advanceAsync(100);
  assertCode(call, "RUN_TIMEOUT");
  assert.equal(warn.mock.callCount(), 1);
  assert.equal(batcher.pending.inFlight, 0);
});

test("with endless concurrency and runs of no time at all, every call is answered", async () => {
  const clock = manualClock();
  const batcher = createBatcher((items: number[]) => items, { concurrency: Infinity, maxBatchSize: 8, clock });
  for (let round = 0; round < 300; round++) {
    const calls = [1, 2, 3].map((item) => watch(batcher(item, { timeoutMs: 10_000 })));
    await clock.advanceAsync(round % 3);
    assert.deepEqual(statuses(calls), Array(3).fill("fulfilled"));
  }
});

test("a synchronous batch function leaves turns to others, also where the clock stands still", async () => {
  const batcher = createBatcher((items: number[]) => items, {
    clock: { now: () => 0, after: (delayMs, callback) => systemClock.after(delayMs, callback) },
    maxBatchSize: 4,
    concurrency: 1,
  });
  let isOver = false;
  let calls = 0;
  setImmediate(() => setImmediate(() => setImmediate(() => (isOver = true))));
  const caller = async (): Promise<void> => {
    while (!isOver && calls++ < 200_000) await batcher(1);
  };
  await Promise.all(Array.from({ length: 16 }, caller));
  assert.ok(isOver, "no turn of the event loop ended");
});

test("a batcher keeps the options that it was made with", async () => {
  const options = { concurrency: 1, price: { perRun: 1 } };
  const batcher = createBatcher((items: number[]) => items, options);
  options.concurrency = 7;
  options.price.perRun = 5;
  await batcher(1);
  assert.equal(batcher.capacity.concurrency, 1);
  assert.equal(batcher.stats().cost?.total, 1);
});

test("a policy that calls its batcher when items arrive wakes it again", async () => {
  const clock = manualClock();
  let nested: Watched<number> | undefined;
  const policy: Policy = {
    name: "calls",
    decide: ({ waiting }) => ({ run: waiting }),
    arrived: () => (nested ??= watch(batcher(2))),
  };
  const batcher = createBatcher((items: number[]) => items, { clock, policy, maxBatchSize: 1 });
  const calls = [watch(batcher(1))];
  await clock.advanceAsync(1);
  calls.push(watch(batcher(3)));
  await clock.advanceAsync(1);
  assert.deepEqual(statuses([...calls, nested!]), Array(3).fill("fulfilled"));
});

test("what a key function does to the call that it is called for counts: close, and abort of its signal", async () => {
  for (const key of ["weigh", "fairKey", "groupKey"] as const)
    for (const onQueueFull of ["reject", "wait"] as const)
      for (const what of ["close", "abort"] as const) {
        const clock = manualClock();
        const controller = new AbortController();
        let isFirst = true;
        const batcher = createBatcher((items: number[]) => items, {
          clock,
          maxBatchSize: 1,
          concurrency: 1,
          maxQueueSize: 2,
          onQueueFull,
          [key]: () => {
            if (isFirst && what === "abort") controller.abort(new Error("left"));
            else if (isFirst) void batcher.close();
            isFirst = false;
            return 1;
          },
        });
        const options = what === "abort" ? { signal: controller.signal } : {};
        const calls = [watch(batcher(1, options)), watch(batcher.settle([2, 3, 4], options))];
        await clock.advanceAsync(100);
        assert.deepEqual(statuses(calls), ["rejected", "rejected"], `${key}, ${onQueueFull}, ${what}`);
        assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
        isFirst = true;
        const list = watch(batcher.settle([1, 2, 3, 4], options));
        await clock.advanceAsync(100);
        await batcher.close();
        assert.notEqual(list.status, "pending");
        const { ok, error, timeout, aborted, rejected } = batcher.stats().items;
        assert.equal(ok + error + timeout + aborted + rejected, 8);
      }
});

test("an item whose key function ends its list and then throws is counted once", async () => {
  for (const key of ["weigh", "fairKey", "groupKey"] as const)
    for (const what of ["close", "abort"] as const) {
      const controller = new AbortController();
      const { batcher, clock, finishAll } = heldBatcher({
        [key]: (item: number) => {
          if (item < 3) return 1;
          if (what === "abort") controller.abort(new Error("left"));
          else void batcher.close();
          throw new Error("no key");
        },
      });
      const list = watch(batcher.settle([1, 2, 3, 4, 5], { signal: controller.signal }));
      await clock.settle();
      await finishAll();
      assert.equal(list.status, "fulfilled");
      const { ok, error, timeout, aborted, rejected } = batcher.stats().items;
      assert.equal(ok + error + timeout + aborted + rejected, 5, `${key}, ${what}`);
    }
});

test("a text is no list of its characters", async () => {
  const batcher = createBatcher((texts: string[]) => texts);
  for (const method of ["many", "settle", "settleDetailed"] as const)
    await assert.rejects(batcher[method]("hello" as never), {
      name: "TypeError",
      message: 'items must be an array or another iterable, got "hello"',
    });
});
