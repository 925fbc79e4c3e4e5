import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createBatcher, type BatcherOptions } from "../../dist/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";
import { assertCode, heldBatcher, numbers, statuses, values, watch, watchAll, type Rig } from "../support/rig.js";
import { seedsTo } from "../support/seeds.js";

const letter = (item: string): string => item[0]!;
const of = (tenant: string, count: number, from = 1): string[] =>
  numbers(count, from).map((number) => `${tenant}${number}`);

/** Lets the first item go alone, so that the rest of the calls waits for its slot. */
async function busyRig(options: BatcherOptions<string, string> = {}): Promise<Rig<string, string>> {
  const rig = heldBatcher<string>({ fairKey: letter, maxBatchSize: 4, ...options });
  watchAll(rig.batcher, ["-"]);
  await rig.clock.settle();
  return rig;
}

async function batchesOf(rig: Rig<string, string>): Promise<string[][]> {
  await rig.finishAll();
  return rig.batches().slice(1);
}

test("the seats of a batch go to the tenants by turns, and within a tenant by arrival", async () => {
  const rig = await busyRig();
  watchAll(rig.batcher, [...of("a", 6), ...of("b", 2), ...of("c", 1)]);
  assert.deepEqual(await batchesOf(rig), [["a1", "b1", "c1", "a2"], ["b2", "a3", "a4", "a5"], ["a6"]]);
});

test("a tenant that comes late does not wait for what others have queued before", async () => {
  const rig = await busyRig();
  watchAll(rig.batcher, of("a", 50));
  await rig.runs[0]!.finish();
  watchAll(rig.batcher, of("b", 1));
  await rig.runs[1]!.finish();
  assert.deepEqual(rig.runs[2]!.items, ["a5", "b1", "a6", "a7"]);
});

test("a tenant that was idle has saved up nothing", async () => {
  const rig = await busyRig();
  watchAll(rig.batcher, of("a", 40));
  for (let run = 0; run < 6; run++) await rig.runs[run]!.finish();
  watchAll(rig.batcher, of("b", 40));
  for (let run = 6; run < 10; run++) await rig.runs[run]!.finish();
  const shared = rig.batches().slice(7, 11).flat().map(letter);
  assert.ok(Math.abs(shared.filter((tenant) => tenant === "b").length - shared.length / 2) <= 1, shared.join(" "));
});

test("shares divide what tenants get while both wait", async () => {
  const rig = await busyRig({ shareOf: (key) => (key === "a" ? 3 : 1) });
  watchAll(rig.batcher, [...of("b", 30), ...of("a", 30)]);
  for (let run = 0; run < 6; run++) await rig.runs[run]!.finish();
  const taken = rig.batches().slice(1, 6).flat().map(letter);
  assert.equal(taken.filter((tenant) => tenant === "a").length, 15);
});

test("with weigh a turn is worth a weight, not an item", async () => {
  const weigh = (item: string): number => (letter(item) === "a" ? 10 : 1);
  const rig = await busyRig({ weigh, overloadOrder: "arrival" });
  watchAll(rig.batcher, [...of("a", 8), ...of("b", 40)]);
  for (let run = 0; run < 6; run++) await rig.runs[run]!.finish();
  const taken = rig.batches().slice(1, 6).flat();
  assert.equal(taken.filter((item) => letter(item) === "a").length, 2, taken.join(" "));
});

test("items without weight take turns too", async () => {
  const rig = await busyRig({ weigh: (item) => (letter(item) === "a" ? 0 : 1) });
  watchAll(rig.batcher, [...of("a", 20), ...of("b", 4)]);
  await rig.runs[0]!.finish();
  assert.equal(rig.runs[1]!.items.filter((item) => letter(item) === "b").length, 2);
});

test("one account counts in every lane", async () => {
  const rig = await busyRig();
  watchAll(rig.batcher, of("a", 3), { priority: "immediate" });
  watchAll(rig.batcher, [...of("a", 3, 4), ...of("b", 5)]);
  // Three immediate items of a come first; b makes up for them.
  assert.deepEqual(await batchesOf(rig), [
    ["a1", "a2", "a3", "b1"],
    ["b2", "b3", "a4", "b4"],
    ["a5", "b5", "a6"],
  ]);
});

test("the group is that of the tenant whose turn it is, and the others fill its seats", async () => {
  // a has had two items when the second batch is chosen.
  const rig = await busyRig({ groupKey: (item) => item.at(-1) });
  watchAll(rig.batcher, ["a-x", "a+x", "a-y", "b-y", "b+y", "c-x"]);
  assert.deepEqual(await batchesOf(rig), [
    ["a-x", "c-x", "a+x"],
    ["b-y", "b+y", "a-y"],
  ]);
});

test("orderKey holds across tenants", async () => {
  const rig = await busyRig({ orderKey: () => 0, maxBatchSize: 2 });
  watchAll(rig.batcher, [...of("a", 4), ...of("b", 2)]);
  assert.deepEqual(await batchesOf(rig), [
    ["a1", "a2"],
    ["a3", "a4"],
    ["b1", "b2"],
  ]);
});

test("an item that tenants share goes in the first turn of any of them", async () => {
  const rig = await busyRig({ dedupeKey: (item) => item.slice(1), maxBatchSize: 2 });
  const calls = watchAll(rig.batcher, ["a1", "a2", "a3", "a9", "b9"]);
  // b's first item is the last of a.
  assert.deepEqual(await batchesOf(rig), [
    ["a1", "a9"],
    ["a2", "a3"],
  ]);
  assert.deepEqual(statuses(calls), Array(5).fill("fulfilled"));
});

test("a sharer that leaves takes its turn along", async () => {
  const rig = await busyRig({ dedupeKey: (item) => item.slice(1), maxBatchSize: 2 });
  const controller = new AbortController();
  watchAll(rig.batcher, ["a1", "a2", "a3", "a9"]);
  watchAll(rig.batcher, ["b9"], { signal: controller.signal });
  controller.abort();
  assert.deepEqual(await batchesOf(rig), [
    ["a1", "a2"],
    ["a3", "a9"],
  ]);
});

test("keys are those of a Map, and items without one are one tenant", async () => {
  const key = {};
  const keys = new Map<string, unknown>([
    ["u1", undefined],
    ["u2", undefined],
    ["u3", undefined],
    ["n1", Number.NaN],
    ["n2", Number.NaN],
    ["o1", key],
  ]);
  const rig = await busyRig({ fairKey: (item) => keys.get(item), maxBatchSize: 3 });
  watchAll(rig.batcher, keys.keys());
  assert.deepEqual(await batchesOf(rig), [
    ["u1", "n1", "o1"],
    ["u2", "n2", "u3"],
  ]);
});

test("fairKey and shareOf are called once, on arrival; a throw or a wrong share fails that call only", async () => {
  const asked: unknown[] = [];
  const { batcher, finishAll } = heldBatcher<string>({
    fairKey: (item) => {
      asked.push(item);
      if (item === "t1") throw new Error("no tenant");
      return letter(item);
    },
    shareOf: (key) => {
      asked.push(`share of ${String(key)}`);
      if (key === "s") throw new Error("no share");
      return key === "w" ? 0 : 1;
    },
  });
  const calls = watchAll(batcher, ["a1", "t1", "s1", "w1"]);
  assert.deepEqual(asked, ["a1", "share of a", "t1", "s1", "share of s", "w1", "share of w"]);
  await finishAll();
  assert.equal(asked.length, 7);
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "rejected", "rejected"]);
  assert.match(String(calls[1]!.reason), /no tenant/);
  assert.match(String(calls[2]!.reason), /no share/);
  assert.match(String(calls[3]!.reason), /shareOf\(key\) must return a finite number > 0, got 0/);
});

test("shareOf needs fairKey", () => {
  assert.throws(() => createBatcher((items: number[]) => items, { shareOf: () => 1 }), /shareOf needs fairKey/);
});

test("one tenant alone may use six sevenths of the queue, and the rest is for others", async () => {
  const rig = await busyRig({ maxQueueSize: 70 });
  const calls = watchAll(rig.batcher, of("a", 70));
  assert.equal(calls.filter(({ status }) => status === "pending").length, 70);
  await rig.clock.settle();
  const refused = calls.filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 10);
  const { message, details } = assertCode(refused[0], "QUEUE_FULL");
  assert.match(message, /the room of tenant "a" is full: 60 of the 60 waiting items are its own \(maxQueueSize 70\)/);
  assert.deepEqual([details["tenant"], details["tenantQueued"], details["queued"]], ["a", 60, 60]);
  const others = watchAll(rig.batcher, [...of("b", 5), ...of("c", 2)]);
  await rig.clock.settle();
  assert.deepEqual(statuses(others), Array(7).fill("pending"));
  await rig.finishAll();
  assert.deepEqual(statuses(others), Array(7).fill("fulfilled"));
});

test("a queue without bound refuses nobody, and one place is for anybody", async () => {
  const endless = await busyRig({ maxQueueSize: Infinity });
  const many = watchAll(endless.batcher, of("a", 500));
  const single = await busyRig({ maxQueueSize: 1 });
  const one = watchAll(single.batcher, ["a1"]);
  await endless.clock.settle();
  await single.clock.settle();
  assert.deepEqual([...new Set(statuses(many)), ...statuses(one)], ["pending", "pending"]);
});

test("those who wait for room are let in by turns of tenants, each in order of arrival", async () => {
  const rig = await busyRig({ maxQueueSize: 18, maxBatchSize: 1, onQueueFull: "wait" });
  const calls = watchAll(rig.batcher, [...of("a", 30), ...of("b", 5)]);
  const order = (await batchesOf(rig)).flat();
  assert.deepEqual(
    order.filter((item) => letter(item) === "a"),
    of("a", 30),
  );
  assert.ok(order.indexOf("b5") < order.indexOf("a20"), order.join(" "));
  assert.deepEqual(statuses(calls), Array(35).fill("fulfilled"));
});

test("a tenant that waits for room leaves places to wait for others", async () => {
  const rig = await busyRig({ maxQueueSize: 9, maxBatchSize: 1, onQueueFull: "wait" });
  const flood = watchAll(rig.batcher, of("a", 50));
  const other = watchAll(rig.batcher, of("b", 2));
  await rig.clock.settle();
  assertCode(flood.at(-1), "QUEUE_FULL");
  await rig.finishAll();
  assert.deepEqual(statuses(other), ["fulfilled", "fulfilled"]);
});

test("with orderKey those who wait for room keep the order of arrival", async () => {
  const rig = await busyRig({ maxQueueSize: 2, maxBatchSize: 2, onQueueFull: "wait", orderKey: () => 0 });
  watchAll(rig.batcher, ["a1", "a2", "a3", "b1"]);
  assert.deepEqual((await batchesOf(rig)).flat(), ["a1", "a2", "a3", "b1"]);
});

test("a list of several tenants and of one that throws is fed by turns", async () => {
  const rig = await busyRig({
    maxQueueSize: 12,
    maxBatchSize: 2,
    fairKey: (item) => {
      if (item === "t1") throw new Error("no tenant");
      return letter(item);
    },
  });
  const list = watch(rig.batcher.settle(["a1", "b1", "t1", "a2", "a3", "c1"]));
  const other = watch(rig.batcher.many(of("d", 20)));
  await rig.finishAll();
  assert.equal(list.status, "fulfilled");
  assert.deepEqual(
    list.value!.map(({ status }) => status),
    ["fulfilled", "fulfilled", "rejected", "fulfilled", "fulfilled", "fulfilled"],
  );
  assert.equal(other.status, "fulfilled");
});

test("under standing overload each tenant's newest go first, and the tenants by turns", async () => {
  const rig = await busyRig({ overloadOrder: "newest", maxBatchSize: 2, maxQueueSize: Infinity });
  for (let round = 0; round < 40; round++) {
    watchAll(rig.batcher, [...of("a", 4, 4 * round), ...of("b", 1, round)]);
    await rig.clock.advanceAsync(10);
    await rig.runs[round]!.finish();
  }
  assert.ok(rig.batcher.stats().overload !== null, "overload stands");
  const last = rig.batches().slice(-5);
  assert.ok(
    last.every((batch) => batch.some((item) => letter(item) === "b")),
    JSON.stringify(last),
  );
});

test("under standing overload the items of a tenant that has no part in it go by arrival", async () => {
  const rig = await busyRig({ overloadOrder: "newest", maxBatchSize: 2, maxQueueSize: Infinity });
  for (let round = 0; round < 60; round++) {
    watchAll(rig.batcher, [...of("a", 4, 4 * round), ...(round % 3 === 0 ? of("b", 2, round) : [])]);
    await rig.clock.advanceAsync(10);
    await rig.runs[round]!.finish();
  }
  assert.ok(rig.batcher.stats().overload !== null, "overload stands");
  const placesOf = (tenant: string): number[] =>
    rig.batches().slice(30).flat().filter((item) => letter(item) === tenant).map((item) => Number(item.slice(1))); // prettier-ignore
  const inOrder = (places: readonly number[]): number[] => places.toSorted((a, b) => a - b);
  assert.ok(placesOf("b").length > 15);
  assert.deepEqual(placesOf("b"), inOrder(placesOf("b")));
  assert.notDeepEqual(placesOf("a"), inOrder(placesOf("a")));
});

test("tenants that come and go leave no memory behind", async () => {
  let seen = 0;
  const batcher = createBatcher((items: number[]) => ((seen += items.length), items), { fairKey: (item) => item });
  const wave = async (from: number): Promise<void> => {
    for (let first = from; first < from + 100_000; first += 5000)
      await Promise.all(numbers(5000, first).map((item) => batcher(item)));
  };
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heapBytes = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  await wave(0);
  const heaps = [heapBytes()];
  for (let from = 100_000; from < 400_000; from += 100_000) {
    await wave(from);
    heaps.push(heapBytes());
  }
  assert.equal(seen, 400_000);
  // A record of each would take more than 10 MB a wave; once, the engine may keep a few MB of its own.
  const least = Math.min(...heaps.slice(1).map((heap, i) => heap - heaps[i]!));
  assert.ok(least < 2e6, `${heaps.join(" → ")} bytes`);
  await batcher.close();
});

/**
 * Service of two tenants of equal share who both have items waiting all the time, as seen from outside: the largest
 * difference over any stretch of the course, and the bound.
 */
async function serviceDifference(seed: number, unfair: (item: string) => string = letter): Promise<[number, number]> {
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const maxBatchSize = 1 + below(12);
  const concurrency = 1 + below(4);
  const weighs = random() < 0.5;
  const heaviest = weighs ? 20 : 1;
  const weightOf = (item: string): number => (weighs ? 1 + ((Number(item.slice(1)) * 7919 + seed) % heaviest) : 1);
  const rig = heldBatcher<string>({
    maxBatchSize,
    concurrency,
    fairKey: unfair,
    maxQueueSize: Infinity,
    ...(weighs && { weigh: weightOf }),
    ...(random() < 0.3 && { orderKey: (item: string) => (below(2) === 0 ? undefined : item) }),
  });
  const waiting = { a: 0, b: 0 };
  let next = 0;
  const call = (tenant: string, count: number): void => {
    if (tenant === "a" || tenant === "b") waiting[tenant] += count;
    const priority = (["immediate", "interactive", "interactive", "bulk"] as const)[below(4)]!;
    // One lane for both: a lane goes before turns.
    const terms = tenant === "a" || tenant === "b" ? {} : { priority };
    watchAll(rig.batcher, of(tenant, count, next), terms);
    next += count;
  };
  let lead = 0;
  let least = 0;
  let most = 0;
  let seen = 0;
  for (let step = 0; step < 60; step++) {
    while (waiting.a < 60) call("a", 20 + below(40));
    while (waiting.b < 60) call("b", 20 + below(40));
    if (random() < 0.5) call("cdefg"[below(5)]!, 1 + below(5));
    await rig.clock.settle();
    for (; seen < rig.runs.length; seen++)
      for (const item of rig.runs[seen]!.items) {
        const tenant = letter(item);
        if (tenant !== "a" && tenant !== "b") continue;
        waiting[tenant]--;
        lead += tenant === "a" ? weightOf(item) : -weightOf(item);
        least = Math.min(least, lead);
        most = Math.max(most, lead);
      }
    await rig.runs[below(rig.runs.length)]!.finish();
    await rig.runs[seen - 1]!.finish();
  }
  return [most - least, concurrency * maxBatchSize * heaviest + heaviest];
}

test("two tenants who wait all the time get the same service, within a batch for each slot and one item", async () => {
  for (const seed of seedsTo(60, 5)) {
    const [difference, bound] = await serviceDifference(seed);
    assert.ok(difference <= bound, `seed ${seed}: ${difference}, bound ${bound}`);
  }
});

test("the bound on service finds a deliberate unfairness", async () => {
  let isFound = false;
  for (let seed = 1; seed <= 20 && !isFound; seed++) {
    // b has to share its turns with everybody else.
    const [difference, bound] = await serviceDifference(seed, (item) => (letter(item) === "a" ? "a" : "rest"));
    isFound = difference > bound;
  }
  assert.ok(isFound, "no course showed it");
});

test("values reach their own callers", async () => {
  const rig = await busyRig();
  const calls = watchAll(rig.batcher, [...of("a", 9), ...of("b", 3)]);
  await rig.finishAll();
  assert.deepEqual(values(calls), [...of("a", 9), ...of("b", 3)]);
});

for (const how of ["abort", "timeout"])
  test(`a tenant that joined a run takes the place of its put-back item when the first caller leaves by ${how}`, async () => {
    interface Item {
      readonly tenant: string;
      readonly key: string;
    }
    const { batcher, clock, runs } = heldBatcher<Item>({
      fairKey: ({ tenant }) => tenant,
      dedupeKey: ({ key }) => key,
      dedupe: "running",
    });
    const controller = new AbortController();
    const first = watch(batcher({ tenant: "a", key: "same" }, { signal: controller.signal, timeoutMs: 360 }));
    await clock.settle();
    const sharers = ["b", "c", "b"].map((tenant) => watch(batcher({ tenant, key: "same" })));
    const others = watchAll(batcher, [{ tenant: "b", key: "other" }]);
    runs[0]!.context.putBack();
    runs[0]!.context.pause(300);
    await runs[0]!.fail(new Error("429"));
    assert.deepEqual(
      batcher.stats().tenants?.busiest.map(({ key, queued }) => [key, queued]),
      [
        ["a", 1],
        ["b", 1],
        ["c", 0],
      ],
    );
    if (how === "abort") controller.abort(new Error("the client hung up"));
    else await clock.advanceAsync(360);
    await clock.advanceAsync(300);
    await clock.settle();
    assert.equal(first.status, "rejected");
    for (const run of runs.slice(1)) await run.finish();
    assert.deepEqual(statuses([...sharers, ...others]), Array(4).fill("fulfilled"));
    assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
    await batcher.close();
  });
