// One table of promises, held against the npm package `dataloader` and against ours.
import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import Original from "dataloader";
import { DataLoader } from "../../dist/adapters/dataloader/index.js";
import { BatcherError } from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { watch } from "../support/rig.ts";

type LoaderClass = typeof DataLoader;
interface Made<K, V> {
  readonly loader: DataLoader<K, V>;
  readonly batches: K[][];
}

/** A loader that echoes its keys and notes its batches. */
function echoing<K>(
  Loader: LoaderClass,
  options: ConstructorParameters<typeof DataLoader<K, K, any>>[1] = {},
): Made<K, K> {
  const batches: K[][] = [];
  const loader = new Loader<K, K, any>(async (keys) => {
    batches.push([...keys]);
    return keys;
  }, options) as unknown as DataLoader<K, K>;
  return { loader, batches };
}

/** An echoing loader whose batches go when the test says so. */
function scheduled<K>(Loader: LoaderClass, options: { maxBatchSize?: number } = {}) {
  const callbacks: (() => void)[] = [];
  const made = echoing<K>(Loader, { ...options, batchScheduleFn: (callback) => callbacks.push(callback) });
  const turns = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await turn();
  };
  const go = async (): Promise<void> => {
    for (const callback of callbacks.splice(0)) callback();
    await turns(3);
  };
  return { ...made, callbacks, turns, go };
}

const documented: Record<string, (Loader: LoaderClass) => unknown> = {
  "a value is loaded by its key": async (Loader) => {
    const { loader } = echoing<number>(Loader);
    const promise = loader.load(1);
    assert.ok(promise instanceof Promise);
    assert.equal(await promise, 1);
  },

  "loads of one turn share a batch, in the order of the loads": async (Loader) => {
    const { loader, batches } = echoing<number>(Loader);
    assert.deepEqual(await Promise.all([loader.load(2), loader.load(9), loader.load(6)]), [2, 9, 6]);
    assert.deepEqual(batches, [[2, 9, 6]]);
  },

  "loads made in promises of one turn share a batch": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader);
    await Promise.all([
      loader.load("A"),
      Promise.resolve().then(() => Promise.resolve().then(() => loader.load("B"))),
      Promise.resolve().then(async () => {
        await undefined;
        return loader.load("C");
      }),
    ]);
    assert.deepEqual(batches.map((batch) => batch.toSorted((a, b) => a.localeCompare(b))), [["A", "B", "C"]]); // prettier-ignore
  },

  "a loader can be called from the batch function of another": async (Loader) => {
    const deep: string[][] = [];
    const inner = new Loader<string[], string[]>(async (groups) => {
      for (const group of groups) deep.push([...group]);
      return groups;
    });
    const outer = new Loader<string, string>((keys) => inner.load([...keys]));
    const other = new Loader<string, string>((keys) => inner.load([...keys]));
    assert.deepEqual(
      await Promise.all([outer.load("A"), outer.load("B"), other.load("C")]),
      ["A", "B", "C"], // prettier-ignore
    );
    assert.deepEqual(deep, [["A", "B"], ["C"]]);
  },

  "loadMany gives values in the order of the keys, and takes any array-like": async (Loader) => {
    const { loader } = echoing<number>(Loader);
    assert.deepEqual(await loader.loadMany([1, 2]), [1, 2]);
    assert.deepEqual(await loader.loadMany([]), []);
    assert.deepEqual(await loader.loadMany({ 0: 3, 1: 4, length: 2 }), [3, 4]);
  },

  "loadMany resolves with an Error in the place of a key that failed": async (Loader) => {
    const loader = new Loader<string, string>(async (keys) =>
      keys.map((key) => (key === "bad" ? new Error("bad key") : key)),
    );
    const [good, bad, other] = await loader.loadMany(["a", "bad", "b"]);
    assert.deepEqual([good, (bad as Error).message, other], ["a", "bad key", "b"]);
  },

  "maxBatchSize splits what one turn asks for": async (Loader) => {
    const { loader, batches } = echoing<number>(Loader, { maxBatchSize: 2 });
    assert.deepEqual(await loader.loadMany([1, 2, 3]), [1, 2, 3]);
    assert.deepEqual(batches, [[1, 2], [3]]);
  },

  "maxBatchSize counts keys, not repeated loads": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader, { maxBatchSize: 3 });
    await loader.loadMany(["a", "a", "b", "a", "c", "b", "d"]);
    assert.deepEqual(batches, [["a", "b", "c"], ["d"]]);
  },

  "batch: false loads keys one by one": async (Loader) => {
    const { loader, batches } = echoing<number>(Loader, { batch: false });
    assert.deepEqual(await loader.loadMany([1, 2]), [1, 2]);
    assert.deepEqual(batches, [[1], [2]]);
  },

  "equal keys are loaded once, at once and later": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader);
    assert.deepEqual(await Promise.all([loader.load("A"), loader.load("A"), loader.load("B")]), ["A", "A", "B"]);
    assert.deepEqual(await Promise.all([loader.load("A"), loader.load("C")]), ["A", "C"]);
    assert.deepEqual(batches, [["A", "B"], ["C"]]);
  },

  "equal keys are loaded once across batches of limited size": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader, { maxBatchSize: 1 });
    await Promise.all(["a", "b", "a"].map((key) => loader.load(key)));
    assert.deepEqual(batches, [["a"], ["b"]]);
  },

  "a cached value waits for the batch of its turn, so that what depends on both shares a batch": async (Loader) => {
    let finish = (): void => undefined;
    const loader = new Loader<number, number>((keys) => new Promise((resolve) => (finish = () => resolve([...keys]))));
    loader.prime(1, 1);
    for (const order of [
      [1, 2],
      [3, 1],
    ]) {
      // prettier-ignore
      const seen: number[] = [];
      const loads = order.map((key) => loader.load(key).then((value) => seen.push(value)));
      await turn();
      await turn();
      assert.deepEqual(seen, [], "the batch still runs");
      finish();
      await Promise.all(loads);
      assert.deepEqual(new Set(seen), new Set(order));
    }
  },

  "dependent loads of a cached and a fresh value take two batches, not three": async (Loader) => {
    const batches: number[][] = [];
    const loader = new Loader<number, { friend: number }>(async (keys) => {
      batches.push(keys.toSorted((a, b) => a - b));
      return keys.map((key) => ({ friend: key + 10 }));
    });
    loader.prime(1, { friend: 3 });
    const friendOf = async (id: number) => loader.load((await loader.load(id)).friend);
    await Promise.all([friendOf(1), friendOf(2)]);
    assert.deepEqual(batches, [[2], [3, 12]]);
  },

  "a cached value resolves though the batch of its turn fails": async (Loader) => {
    const loader = new Loader<number, number>(async () => {
      throw new Error("down");
    });
    loader.prime(1, 1);
    const [cached, fresh] = await Promise.allSettled([loader.load(1), loader.load(2)]);
    assert.deepEqual([cached?.status, fresh?.status], ["fulfilled", "rejected"]);
  },

  "a turn with cached values only resolves without a batch": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader);
    loader.prime("A", "a");
    assert.deepEqual(await loader.loadMany(["A", "A"]), ["a", "a"]);
    assert.deepEqual(batches, []);
  },

  "clear forgets one key, clearAll every key, and both return the loader": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader);
    await loader.loadMany(["A", "B"]);
    assert.equal(loader.clear("A"), loader);
    await loader.loadMany(["A", "B"]);
    assert.equal(loader.clearAll(), loader);
    await loader.loadMany(["A", "B"]);
    assert.deepEqual(batches, [["A", "B"], ["A"], ["A", "B"]]);
  },

  "prime fills the cache, never overwrites, takes promises, and returns the loader": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader);
    assert.equal(loader.prime("A", "a"), loader);
    loader.prime("A", "x").prime("B", Promise.resolve("b"));
    assert.deepEqual(await loader.loadMany(["A", "B", "C"]), ["a", "b", "C"]);
    loader.prime("C", "x");
    assert.equal(await loader.load("C"), "C");
    loader.clear("C").prime("C", "c");
    assert.equal(await loader.load("C"), "c");
    assert.deepEqual(batches, [["C"]]);
  },

  "a primed Error rejects its loads, and nobody has to have asked": async (Loader) => {
    const { loader, batches } = echoing<number>(Loader);
    loader.prime(1, new Error("primed"));
    await turn();
    await assert.rejects(loader.load(1), /primed/);
    assert.deepEqual(batches, []);
  },

  "an Error in a place rejects that load, and is cached until it is cleared": async (Loader) => {
    let loads = 0;
    const loader = new Loader<number, number>(async (keys) => {
      loads++;
      return keys.map((key) => (key % 2 === 0 ? key : new Error(`odd ${key}`)));
    });
    const [odd, even] = await Promise.allSettled([loader.load(1), loader.load(2)]);
    assert.deepEqual([odd?.status, even?.status], ["rejected", "fulfilled"]);
    await assert.rejects(loader.load(1), /odd 1/);
    assert.equal(loads, 1);
    loader.clear(1);
    await assert.rejects(loader.load(1), /odd 1/);
    assert.equal(loads, 2);
  },

  "what the whole batch fails with reaches every load and is not cached, nor seen by a retry": async (Loader) => {
    let down = true;
    const loader = new Loader<number, number>(async (keys) => {
      if (down) throw new Error("down");
      return keys;
    });
    const retried = [1, 2].map((key) =>
      loader.load(key).catch((error: Error) => {
        assert.equal(error.message, "down");
        down = false;
        return loader.load(key);
      }),
    );
    assert.deepEqual(await Promise.all(retried), [1, 2]);
  },

  "objects are keys by identity": async (Loader) => {
    const { loader, batches } = echoing<object>(Loader);
    const [a, b] = [{}, {}];
    assert.deepEqual(await loader.loadMany([a, b, a]), [a, b, a]);
    assert.equal(batches[0]?.length, 2);
    loader.clear(a);
    await loader.loadMany([a, b]);
    assert.deepEqual(batches[1], [a]);
  },

  "cacheKeyFn says which keys are equal, to load, clear and prime": async (Loader) => {
    interface Key { readonly id: number } // prettier-ignore
    const { loader, batches } = echoing<Key>(Loader, { cacheKeyFn: ({ id }: Key) => id });
    const [first, second] = await Promise.all([loader.load({ id: 1 }), loader.load({ id: 1 })]);
    assert.equal(first, second);
    loader.clear({ id: 1 }).prime({ id: 1 }, { id: 7 });
    assert.deepEqual(await loader.load({ id: 1 }), { id: 7 });
    assert.deepEqual(batches, [[{ id: 1 }]]);
  },

  "cache: false loads every key each time, repeated keys included, and asks cacheKeyFn nothing": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader, {
      cache: false,
      cacheKeyFn: () => assert.fail("nothing is cached"),
    });
    loader.prime("A", "primed").clear("A").clearAll();
    await loader.loadMany(["A", "B", "A"]);
    assert.equal(await loader.load("A"), "A");
    assert.deepEqual(batches, [["A", "B", "A"], ["A"]]);
  },

  "cacheMap: null is cache: false, and cache: false leaves a cacheMap alone": async (Loader) => {
    const { loader, batches } = echoing<string>(Loader, { cacheMap: null });
    await loader.loadMany(["A", "A"]);
    assert.deepEqual(batches, [["A", "A"]]);
    const untouched = new Map([["X", Promise.resolve("x")]]);
    const other = echoing<string>(Loader, { cache: false, cacheMap: untouched });
    other.loader.clearAll();
    assert.equal(await other.loader.load("X"), "X");
    assert.equal(untouched.size, 1);
  },

  "clearAll in the batch function gives unique keys a batch and no cache after it": async (Loader) => {
    const batches: string[][] = [];
    const loader: DataLoader<string, string> = new Loader<string, string>(async (keys) => {
      loader.clearAll();
      batches.push([...keys]);
      return keys;
    });
    await loader.loadMany(["A", "B", "A"]);
    await loader.loadMany(["A", "B", "A"]);
    assert.deepEqual(batches, [["A", "B"], ["A", "B"]]); // prettier-ignore
  },

  "a cacheMap of one's own is used through get, set, delete and clear": async (Loader) => {
    const stash = new Map<string, Promise<string>>();
    const used: string[] = [];
    const cacheMap = {
      get: (key: string) => (used.push(`get ${key}`), stash.get(key)),
      set: (key: string, value: Promise<string>) => (used.push(`set ${key}`), stash.set(key, value)),
      delete: (key: string) => (used.push(`delete ${key}`), stash.delete(key)),
      clear: () => (used.push("clear"), stash.clear()),
    };
    const { loader, batches } = echoing<string>(Loader, { cacheMap });
    await loader.load("a");
    await loader.load("a");
    loader.clear("a").prime("b", "B").clearAll();
    await loader.load("b");
    assert.deepEqual(batches, [["a"], ["b"]]);
    assert.deepEqual(
      used,
      ["get a", "set a", "get a", "delete a", "get b", "set b", "clear", "get b", "set b"], // prettier-ignore
    );
  },

  "batchScheduleFn decides when keys go": async (Loader) => {
    const { loader, batches, turns, go } = scheduled<string>(Loader);
    const loads = [loader.load("A"), loader.load("B"), loader.load("A")];
    await turns(2);
    loads.push(loader.load("C"));
    await turns(1);
    assert.deepEqual(batches, []);
    await go();
    assert.deepEqual(await Promise.all(loads), ["A", "B", "A", "C"]);
    assert.deepEqual(batches, [["A", "B", "C"]]);
    const cached = watch(loader.load("A"));
    await turns(1);
    assert.equal(cached.status, "pending", "a cached value waits for the schedule too");
    await go();
    assert.equal(cached.value, "A");
  },

  "a key loaded after the last callback of batchScheduleFn waits for the next one": async (Loader) => {
    const { loader, batches, callbacks, turns, go } = scheduled<string>(Loader);
    const first = watch(loader.load("A"));
    for (const callback of callbacks.splice(0)) callback();
    const late = watch(loader.load("B"));
    const hit = watch(loader.load("A"));
    await turns(3);
    assert.deepEqual([first.status, late.status, hit.status, batches], ["fulfilled", "pending", "pending", [["A"]]]); // prettier-ignore
    assert.equal(callbacks.length, 1, "it asked for a callback of its own");
    await go();
    assert.deepEqual([late.value, hit.value, batches], ["B", "A", [["A"], ["B"]]]); // prettier-ignore
  },

  "batchScheduleFn is called once for each full batch, and a callback sends that batch only": async (Loader) => {
    const { loader, batches, callbacks, turns } = scheduled<number>(Loader, { maxBatchSize: 2 });
    const loads = [1, 2, 3].map((key) => watch(loader.load(key)));
    assert.equal(callbacks.length, 2);
    callbacks[1]!();
    await turns(3);
    assert.deepEqual([loads.map(({ status }) => status), batches], [["pending", "pending", "fulfilled"], [[3]]]); // prettier-ignore
    callbacks[0]!();
    await turns(3);
    assert.deepEqual(batches, [[3], [1, 2]]);
  },

  "the batch function, cacheKeyFn and batchScheduleFn have the loader as this": async (Loader) => {
    const seen: unknown[] = [];
    const loader = new Loader<number, number>(
      async function (this: unknown, keys) {
        seen.push(this);
        return keys;
      },
      {
        cacheKeyFn(this: unknown, key) {
          seen.push(this);
          return key;
        },
        batchScheduleFn(this: unknown, callback) {
          seen.push(this);
          setImmediate(callback);
        },
      },
    );
    await loader.load(1);
    assert.equal(seen.length, 3);
    for (const each of seen) assert.equal(each, loader);
  },

  "a loader has the name it was given, or null": (Loader) => {
    assert.equal(echoing(Loader, { name: "users" }).loader.name, "users");
    assert.equal(echoing(Loader).loader.name, null);
  },

  "load without a key and loadMany without an array throw a TypeError that says what they got": (Loader) => {
    const { loader } = echoing<any>(Loader);
    for (const key of [null, undefined]) assert.throws(() => loader.load(key), new RegExp(`got:? ${key}`));
    for (const keys of [null, undefined, 7] as any[]) assert.throws(() => loader.loadMany(keys), TypeError);
    for (const falsy of [0, "", false]) assert.doesNotThrow(() => void loader.load(falsy));
  },

  "a wrong construction throws a TypeError that names the option": (Loader) => {
    const Any = Loader as any;
    for (const wrong of [undefined, null, {}, "load"]) assert.throws(() => new Any(wrong), TypeError);
    const load = async (keys: any): Promise<any> => keys;
    for (const maxBatchSize of ["2", null, 0, -1]) {
      assert.throws(() => new Any(load, { maxBatchSize }), { name: "TypeError", message: /maxBatchSize must be/ });
    }
    assert.throws(() => new Any(load, { cacheKeyFn: null }), { name: "TypeError", message: /cacheKeyFn must be/ });
    assert.throws(() => new Any(load, { batchScheduleFn: 5 }), { name: "TypeError", message: /batchScheduleFn must/ });
    assert.throws(() => new Any(load, { cacheMap: { set() {}, clear() {} } }), {
      name: "TypeError",
      message: /cacheMap .*get.*delete/i,
    });
  },

  "a batch function that throws at once, or promises no array, rejects its loads": async (Loader) => {
    const Any = Loader as any;
    const throwing = new Any(() => {
      throw new Error("no luck");
    });
    await assert.rejects(throwing.load(1), /no luck/);
    for (const wrong of [null, undefined, 1, {}])
      await assert.rejects(new Any(async () => wrong).load(1), { name: "TypeError", message: /array/i });
  },

  "too few values reject every load, and are not cached": async (Loader) => {
    let lost = true;
    const loader = new Loader<number, number>(async (keys) => (lost ? keys.slice(1) : keys));
    const failed = await Promise.allSettled([loader.load(1), loader.load(2)]);
    assert.deepEqual(failed.map(({ status }) => status), ["rejected", "rejected"]); // prettier-ignore
    lost = false;
    assert.deepEqual(await loader.loadMany([1, 2]), [1, 2]);
  },

  "a load that fails and that nobody awaits is an unhandled rejection; one that is caught is none": async (Loader) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
    try {
      const loader = new Loader<number, number>(async (keys) => keys.map((key) => new Error(`failed ${key}`)));
      void loader.load(1);
      loader.load(2).catch(() => undefined);
      for (let i = 0; i < 5; i++) await turn();
    } finally {
      process.off("unhandledRejection", note);
      for (const listener of others) process.on("unhandledRejection", listener);
    }
    assert.deepEqual(unhandled.map(String), ["Error: failed 1"]);
  },
};

for (const [name, Loader] of Object.entries({ dataloader: Original as unknown as LoaderClass, sheaf: DataLoader })) {
  for (const [promise, hold] of Object.entries(documented))
    test(`${name}: ${promise}`, async () => void (await hold(Loader)));
}

// Where ours differs, on purpose; docs/guide/dataloader.md lists the same.

test("ours gives the batch function's own error where dataloader wraps a synchronous throw", async () => {
  const error = new RangeError("no luck");
  const load = (): never => {
    throw error;
  };
  await assert.rejects(new DataLoader(load).load(1), (reason) => reason === error);
  await assert.rejects(new Original(load as any).load(1), /errored synchronously/);
});

test("ours takes an array that is returned at once, and names both counts with RESULT_COUNT", async () => {
  assert.equal(await new DataLoader<number, number>((keys) => [...keys]).load(1), 1);
  await assert.rejects(new DataLoader<number, number>(async () => []).load(1), (error) => {
    assert.ok(error instanceof BatcherError);
    assert.deepEqual([error.code, error.details], ["RESULT_COUNT", { expected: 1, received: 0 }]);
    return true;
  });
});

test("ours can limit the batches in flight: keys that wait fill the next batch", async () => {
  const batches: number[][] = [];
  const ends: (() => void)[] = [];
  const loader = new DataLoader<number, number>(
    (keys) => {
      batches.push([...keys]);
      return new Promise((resolve) => ends.push(() => resolve(keys)));
    },
    { concurrency: 1 },
  );
  // A turn asked for before the loader's own ends before it.
  const turns = async (): Promise<void> => {
    await turn();
    await turn();
  };
  const first = loader.load(1);
  await turns();
  const rest = [loader.load(2)];
  await turns();
  rest.push(loader.load(3));
  await turns();
  assert.deepEqual(batches, [[1]]);
  ends.shift()!();
  await first;
  await turns();
  assert.deepEqual(batches, [[1], [2, 3]]);
  ends.shift()!();
  assert.deepEqual(await Promise.all(rest), [2, 3]);
  assert.equal(loader.stats().meanBatchSize, 1.5);
});

test("ours gives a run up after runTimeoutMs, and does not cache that", async () => {
  const clock = manualClock();
  let runs = 0;
  const loader = new DataLoader<number, number>(async (keys) => (runs++ === 0 ? new Promise(() => {}) : keys), {
    clock,
    runTimeoutMs: 100,
  });
  const hung = watch(loader.load(1));
  await clock.advanceAsync(100);
  assert.equal((hung.reason as BatcherError).code, "RUN_TIMEOUT");
  const again = watch(loader.load(1));
  await clock.settle();
  assert.equal(again.value, 1);
});

test("ours refuses batchScheduleFn together with a policy, and says why", () => {
  assert.throws(
    () => new DataLoader(async (keys) => keys, { batchScheduleFn: setImmediate, policy: { name: "p", decide: () => "wait" } }), // prettier-ignore
    /batchScheduleFn and policy both decide when keys go/,
  );
});

test("ours hands over a callback that is called at once, where dataloader would lose the key", async () => {
  const loader = new DataLoader<number, number>(async (keys) => keys, { batchScheduleFn: (callback) => callback() });
  assert.deepEqual(await Promise.all([loader.load(1), loader.load(2)]), [1, 2]);
});

test("ours: a batchScheduleFn that throws fails that load only; what waits goes with the next", async () => {
  let isBroken = true;
  const loader = new DataLoader<number, number>(async (keys) => keys, {
    batchScheduleFn: (callback) => {
      if (isBroken) throw new Error("no timer");
      setImmediate(callback);
    },
  });
  assert.throws(() => loader.load(1), /no timer/);
  isBroken = false;
  assert.equal(await loader.load(2), 2);
  assert.equal(await loader.load(1), 1);
});

test("ours: a cacheKeyFn that throws fails that load only", async () => {
  const { loader } = echoing<number>(DataLoader, {
    cacheKeyFn: (key: number) => {
      if (key === 1) throw new Error("no key");
      return key;
    },
  });
  const before = loader.load(2);
  assert.throws(() => loader.load(1), /no key/);
  assert.deepEqual(await Promise.all([before, loader.load(3)]), [2, 3]);
});

test("ours: what is cleared while it loads is loaded again, and what was primed meanwhile stays", async () => {
  const answers: (() => void)[] = [];
  let runs = 0;
  const loader = new DataLoader<number, string>(
    (keys) =>
      new Promise((resolve) => {
        const run = ++runs;
        answers.push(() => resolve(keys.map((key) => `${key} of run ${run}`)));
      }),
  );
  const first = loader.load(1);
  while (answers.length < 1) await turn();
  loader.clear(1);
  const second = loader.load(1);
  loader.clear(2).prime(2, "primed");
  while (answers.length < 2) await turn();
  for (const answer of answers) answer();
  assert.deepEqual(await Promise.all([first, second, loader.load(2)]), ["1 of run 1", "1 of run 2", "primed"]);
  assert.equal(await loader.load(1), "1 of run 2");
});

test("ours takes a Map of values by cache key; a key that it lacks is undefined", async () => {
  const rows = [{ id: 2, name: "b" }, { id: 1, name: "a" }]; // prettier-ignore
  const loader = new DataLoader<{ id: number }, { name: string } | undefined, number>(
    async () => new Map(rows.map((row) => [row.id, row])),
    { cacheKeyFn: ({ id }) => id },
  );
  const found = await loader.loadMany([{ id: 1 }, { id: 3 }, { id: 2 }]);
  assert.deepEqual(found.map((row) => (row as { name: string } | undefined)?.name), ["a", undefined, "b"]); // prettier-ignore
});
