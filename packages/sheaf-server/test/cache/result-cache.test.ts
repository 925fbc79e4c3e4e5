import assert from "node:assert/strict";
import { test } from "node:test";
import { itemKey } from "../../dist/cache/item-key.js";
import { ModelCache } from "../../dist/cache/model-cache.js";
import { ResultCache } from "../../dist/cache/result-cache.js";
import { copyOfResult } from "../../dist/cache/result-copy.js";

const served = (value: unknown, batchSize = 1): any => ({ value, queueMs: 1, runMs: 2, batchSize });
const clock = { nowMs: 1, now: () => clock.nowMs };

test("two items have one key only if they are equal to the last bit", () => {
  const make = (): unknown[] => [
    "a", "A", "", "\ud800", "\udc00", "\ufffd", 0, -0, 1, "0", null, true, [], {}, [1], [[1]], { a: 1 }, { a: "1" }, { b: 1 },
    { a: 1, b: 2 }, { b: 2, a: 1 }, Float32Array.of(0), Float32Array.of(-0), Float32Array.of(0, 0), Float64Array.of(0),
    { x: Float32Array.of(0) }, { x: Int32Array.of(0) }, { x: Float32Array.of(-0) }, { x: BigInt64Array.of(0n) },
  ]; // prettier-ignore
  const keys = make().map(itemKey);
  assert.equal(new Set(keys).size, keys.length);
  assert.deepEqual(make().map(itemKey), keys);
  const json = '[{"a":1,"b":[1,2.5,1.0,-0]},"日本",[],null]';
  assert.equal(itemKey(JSON.parse(json)), itemKey(JSON.parse(json)));
});

test("the key of a window is that of its own numbers", () => {
  const batch = Float32Array.of(1, 2, 3, 4);
  assert.equal(itemKey(batch.subarray(2)), itemKey(Float32Array.of(3, 4)));
});

test("a copy is equal, has memory of its own, and counts what it takes", () => {
  const rows = Float32Array.of(1, 2, 3, 4);
  const result = JSON.parse('{"text":"é","list":[1,null,{"deep":[true]}],"__proto__":{"own":1}}') as any;
  result.row = rows.subarray(1, 3);
  const { value, bytes } = copyOfResult(result)! as { value: any; bytes: number };
  assert.deepEqual(value, result);
  assert.deepEqual(Object.keys(value), Object.keys(result));
  assert.equal(value.row.buffer.byteLength, 8);
  rows.fill(0);
  result.list[2].deep[0] = false;
  assert.deepEqual([...value.row], [2, 3]);
  assert.deepEqual(value.list[2].deep, [true]);
  assert.ok(bytes > 200);
  const long = copyOfResult(new Float32Array(1000))!;
  assert.ok(long.bytes >= 4000 && long.bytes < 4500);
});

test("what a copy may change is not copied: dates, instances, functions, buffers, what holds itself", () => {
  const loop: unknown[] = [];
  loop.push(loop);
  const others = [new Date(), new Map(), () => 1, Buffer.from("a"), { toJSON: () => 1 }, [new URL("http://a")], loop];
  for (const other of others) assert.equal(copyOfResult(other), undefined);
});

test("the bytes of all models together stay within the bound; the least recently asked for goes first", async () => {
  const store = new ResultCache({ maxBytes: 10_000, clock });
  const [one, other] = [new ModelCache(store), new ModelCache(store)];
  const ask = (cache: ModelCache, item: string): Promise<unknown> =>
    cache.infer(item, {}, async () => served(new Float32Array(250))); // 1,600 bytes each
  for (const item of ["a", "b", "c"]) await ask(one, item);
  for (const item of ["a", "b", "c"]) await ask(other, item);
  await ask(one, "a");
  await ask(other, "d");
  assert.ok(one.counts.bytes + other.counts.bytes <= 10_000);
  assert.deepEqual([one.counts.hits, one.counts.evictions, other.counts.evictions], [1, 1, 0]);
  await ask(one, "a");
  await ask(one, "b"); // was evicted
  assert.deepEqual([one.counts.hits, one.counts.misses], [2, 4]);
});

test("a result that is larger than the whole cache is not kept, and pushes nothing out", async () => {
  const cache = new ModelCache(new ResultCache({ maxBytes: 3000, clock }));
  await cache.infer("small", {}, async () => served("x"));
  await cache.infer("large", {}, async () => served("x".repeat(3000)));
  assert.deepEqual([cache.counts.items, cache.counts.evictions], [1, 0]);
});

test("a result is not given past its age, which counts from when it was asked for", async () => {
  const cache = new ModelCache(new ResultCache({ maxBytes: 10_000, clock }), { ttlMs: 1000 });
  let runs = 0;
  const ask = (): Promise<unknown> => cache.infer("a", {}, async () => served(++runs));
  await ask();
  clock.nowMs += 1000;
  assert.deepEqual([await ask(), runs], [{ value: 1, queueMs: 0, runMs: 0, batchSize: 0 }, 1]);
  clock.nowMs += 1;
  await ask();
  assert.equal(runs, 2);
  assert.equal(cache.counts.items, 1);
});

test("an error is not kept, alone or in a list", async () => {
  const cache = new ModelCache(new ResultCache({ maxBytes: 10_000, clock }));
  await assert.rejects(
    cache.infer("a", {}, async () => {
      throw new Error("first");
    }),
    /first/,
  );
  const outcomes = await cache.inferAll(["a", "b"], {}, async () => [
    { status: "rejected", reason: new Error("second") },
    { status: "fulfilled", value: served("b") },
  ]);
  assert.deepEqual(outcomes.map(({ status }) => status), ["rejected", "fulfilled"]); // prettier-ignore
  assert.equal(((await cache.infer("a", {}, async () => served("now"))) as any).value, "now");
  assert.deepEqual([cache.counts.items, cache.counts.hits], [2, 0]);
});

test("of a list only the missing items run, and outcomes stand in the order of the items", async () => {
  const cache = new ModelCache(new ResultCache({ maxBytes: 10_000, clock }));
  const ran: unknown[] = [];
  const ask = (items: string[]): Promise<any[]> =>
    cache.inferAll(items, {}, async (missing) => {
      ran.push(...missing);
      return missing.map((item) => ({ status: "fulfilled", value: served(`${item}!`, 4) }));
    });
  await ask(["b", "d"]);
  const outcomes = await ask(["a", "b", "c", "d"]);
  assert.deepEqual(ran, ["b", "d", "a", "c"]);
  assert.deepEqual(outcomes.map(({ value }) => value.value), ["a!", "b!", "c!", "d!"]); // prettier-ignore
  assert.deepEqual(outcomes.map(({ value }) => value.batchSize), [4, 0, 4, 0]); // prettier-ignore
  assert.equal(cache.counts.savedRuns, 2 / 4);
});

test("a part that is closed gives its memory back, and keeps nothing that comes later", async () => {
  const store = new ResultCache({ maxBytes: 10_000, clock });
  const [old, next] = [new ModelCache(store), new ModelCache(store)];
  await old.infer("a", {}, async () => served("old"));
  let finish!: (value: unknown) => void;
  const running = old.infer("late", {}, () => new Promise((resolve) => (finish = resolve as never)));
  assert.equal(((await next.infer("a", {}, async () => served("new"))) as any).value, "new");
  old.close();
  finish(served("late"));
  await running;
  assert.deepEqual([old.counts.items, old.counts.bytes, next.counts.items], [0, 0, 1]);
  assert.equal(((await next.infer("a", {}, async () => served("none"))) as any).value, "new");
});

test("the key of a miss is computed once, for the cache and for the batcher that runs it, alone and in a list", async () => {
  let reads = 0;
  const item = {
    get value() {
      return ++reads && 1;
    },
  };
  const cache = new ModelCache(new ResultCache({ maxBytes: 10_000, clock }));
  let sharedKey = "";
  await cache.infer(item, {}, async () => {
    sharedKey = cache.keyOf(item);
    return served(1);
  });
  assert.equal(reads, 1);
  assert.equal(sharedKey, cache.keyOf({ value: 1 }));
  const other = {
    get value() {
      return ++reads && 2;
    },
  };
  await cache.inferAll([other, item], {}, async (missing) => {
    assert.deepEqual(
      missing.map((item) => cache.keyOf(item)),
      [cache.keyOf({ value: 2 })],
    );
    return [{ status: "fulfilled", value: served(2) }];
  });
  assert.equal(reads, 3);
});

test("0 and -0 have keys of their own while one of them runs, and a failed run leaves no key behind", async () => {
  const cache = new ModelCache(new ResultCache({ maxBytes: 10_000, clock }));
  const failed = cache.infer(0, {}, async () => {
    assert.notEqual(cache.keyOf(0), cache.keyOf(-0));
    throw new Error("no run");
  });
  await assert.rejects(failed, /no run/);
  const item = { value: 1 };
  await assert.rejects(cache.infer(item, {}, () => Promise.reject(new Error("no run"))));
  item.value = 2;
  assert.equal(cache.keyOf(item), cache.keyOf({ value: 2 }));
});

test("a greedy owner takes no room from a modest one until that one has been idle for a minute", async () => {
  const now = { nowMs: 0, now: () => now.nowMs };
  const cache = new ModelCache(new ResultCache({ maxBytes: 100_000, clock: now }));
  const [greedy, modest] = [{}, {}];
  const ask = async (item: string, key: object): Promise<boolean> => {
    let isHit = true;
    await cache.infer(item, { caller: { key } }, async () => ((isHit = false), served(new Float32Array(250))));
    return isHit;
  };
  const hits = async (): Promise<number> => {
    let count = 0;
    for (let i = 0; i < 20; i++) if (await ask(`m${i}`, modest)) count++;
    return count;
  };
  await hits();
  for (let i = 0; i < 500; i++) await ask(`g${i}`, greedy);
  assert.equal(await hits(), 20);
  now.nowMs += 61_000;
  for (let i = 0; i < 500; i++) await ask(`h${i}`, greedy);
  assert.equal(await hits(), 0);
});

test("no result takes more than a hundredth of a large cache", async () => {
  const cache = new ModelCache(new ResultCache({ maxBytes: 50_000_000, clock }));
  await cache.infer("large", {}, async () => served("x".repeat(1_000_000)));
  await cache.infer("usual", {}, async () => served("x".repeat(100_000)));
  assert.equal(cache.counts.items, 1);
});
