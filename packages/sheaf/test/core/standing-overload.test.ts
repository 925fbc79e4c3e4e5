import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, fixedWindow, type BatcherOptions, type CallOptions } from "../../dist/index.js";
import { virtualClock } from "../../dist/testing/index.js";
import { simulate } from "../../dist/tuning/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";
import { inProof, seedsTo } from "../support/seeds.js";

/** Ten items in 10 ms, one batch at a time: 1,000 items a second. */
const runMs = 10;
const maxBatchSize = 10;

function rig(options: Partial<BatcherOptions<number, number>> = {}) {
  const clock = virtualClock();
  const batches: number[][] = [];
  const ended = new Map<number, string>();
  const batcher = createBatcher<number, number>(
    async (items) => {
      batches.push([...items]);
      await clock.sleep(runMs);
      return items;
    },
    { maxBatchSize, concurrency: 1, clock, ...options },
  );
  let called = 0;
  const call = (callOptions?: CallOptions, item = called): number => {
    called = Math.max(called, item + 1);
    batcher(item, callOptions).then(
      () => ended.set(item, "ok"),
      (error: unknown) =>
        ended.set(item, error instanceof Error && "code" in error ? String(error.code) : String(error)),
    );
    return item;
  };
  /** One call every `everyMs` for so long; what `options` gives for it. */
  const stream = async (everyMs: number, forMs: number, optionsOf?: (item: number) => CallOptions | undefined) => {
    const endsAtMs = clock.now() + forMs;
    for (let atMs = clock.now(); atMs < endsAtMs; atMs += everyMs) clock.at(atMs, () => call(optionsOf?.(called)));
    await new Promise<void>((resolve) => void clock.at(endsAtMs, resolve));
  };
  const finish = async (): Promise<void> => {
    await clock.idle();
    await batcher.close();
  };
  return { clock, batcher, batches, ended, call, stream, finish, ran: () => batches.flat(), called: () => called };
}

const isAscending = (items: readonly number[]): boolean => items.every((item, at) => at === 0 || items[at - 1]! < item);

test("under standing overload the newest go first, and every call is answered in the end", async () => {
  const { batches, stream, finish, ended, called, ran, batcher } = rig();
  await stream(0.4, 1000);
  const first = batches.findIndex((batch) => !isAscending(batch));
  assert.ok(first > 5 && first < 15, `newest first from batch ${first} on`);
  assert.ok(isAscending(batches.slice(0, first).flat()));
  for (const batch of batches.slice(first)) {
    assert.ok(batch[0]! >= Math.max(...ran().slice(0, ran().indexOf(batch[0]!)), 0), "the newest item is in front");
  }
  assert.ok(batcher.stats().overload!.arrivedPerS > 2 * batcher.stats().overload!.servedPerS);
  await finish();
  assert.equal(ended.size, called());
  assert.deepEqual(new Set(ended.values()), new Set(["ok"]));
  assert.equal(batcher.stats().overload, null);
});

test('overloadOrder: "arrival" keeps the order of arrival', async () => {
  const { stream, finish, ran } = rig({ overloadOrder: "arrival" });
  await stream(0.4, 1000);
  await finish();
  assert.ok(isAscending(ran()));
});

test("refuseLate lets in a call that will go next, and refuses one that newer items would keep waiting for too long", async () => {
  const { stream, finish, ended, called, call } = rig({ refuseLate: 0.85 });
  await stream(0.4, 1000);
  const first = called();
  // In order of arrival all of them would be late: 1,500 items wait, for a second and a half.
  await stream(0.4, 400, () => ({ timeoutMs: 300 }));
  const patient = call({ timeoutMs: 30_000 });
  await finish();
  const ends = Array.from({ length: patient - first }, (_, index) => ended.get(first + index));
  const count = (end: string): number => ends.filter((own) => own === end).length;
  assert.equal(ends.length, 1000);
  assert.ok(count("ok") > 0.9 * 400, `${count("ok")} of 400 that could be answered`);
  assert.ok(count("TIMEOUT") < 0.05 * count("ok"), `${count("TIMEOUT")} were let in and not answered in time`);
  assert.equal(count("QUEUE_FULL"), 1000 - count("ok") - count("TIMEOUT"));
  assert.equal(ended.get(patient), "ok");
});

test("10,000 calls at once, a list longer than the queue, several lists and an endless map go in order", async () => {
  const all = rig();
  for (let i = 0; i < 10_000; i++) all.call();
  await all.finish();
  assert.ok(isAscending(all.ran()));

  const numbers = Array.from({ length: 20_000 }, (_, i) => i);
  const list = rig();
  const results = list.batcher.many(numbers);
  await list.finish();
  assert.deepEqual(await results, numbers);
  assert.ok(isAscending(list.ran()));

  const lists = rig();
  for (let i = 0; i < 4; i++) {
    lists.clock.at(i * 30, () => void lists.batcher.many(numbers.slice(i * 1000, (i + 1) * 1000)));
  }
  await lists.finish();
  assert.equal(lists.ran().length, 4000);
  assert.ok(isAscending(lists.ran()));

  const endless = rig();
  let taken = 0;
  function* source(): Generator<number> {
    for (let i = 0; ; i++) yield i;
  }
  for await (const result of endless.batcher.map(source())) {
    assert.equal(result, taken++);
    if (taken === 5000) break;
  }
  await endless.finish();
  assert.ok(isAscending(endless.ran()));
});

test("a backlog goes in order while less arrives than is served", async () => {
  const { call, stream, finish, ran } = rig();
  for (let i = 0; i < 3000; i++) call();
  await stream(1.5, 3000);
  await finish();
  assert.ok(isAscending(ran()));
});

test("after a stream that ended, its backlog goes in order again", async () => {
  const { batches, stream, finish, clock } = rig();
  await stream(0.4, 500);
  await new Promise<void>((resolve) => void clock.after(100, resolve));
  const from = batches.length;
  await finish();
  assert.ok(batches.length > from + 20);
  assert.ok(isAscending(batches.slice(from).flat()));
});

test("time held by a policy, a rate limit, a pause or a worker that is not ready does not count", async () => {
  const window = rig({ policy: fixedWindow(), maxWaitMs: 2000, maxBatchSize: 1000 });
  await window.stream(2.5, 1900);
  await window.finish();
  assert.ok(isAscending(window.ran()));

  const limited = rig({ rateLimit: { items: 100, perMs: 1000 } });
  await limited.stream(2.5, 3000);
  await limited.finish();
  assert.ok(isAscending(limited.ran()));

  let runs = 0;
  const clock = virtualClock();
  const order: number[] = [];
  const paused = createBatcher<number, number>(
    async (items) => {
      await clock.sleep(runMs);
      if (++runs % 4 === 0) throw Object.assign(new Error("too many"), { retryAfterMs: 30 });
      order.push(...items);
      return items;
    },
    { maxBatchSize, concurrency: 1, clock },
  );
  for (let i = 0; i < 3000; i++) clock.at(i * 0.9, () => void paused(i).catch(() => undefined));
  await clock.idle();
  assert.ok(isAscending(order));

  const started = virtualClock();
  const late: number[] = [];
  const executor = {
    slots: 1,
    ready: () => started.sleep(5000),
    run: async (items: readonly number[]) => {
      late.push(...items);
      await started.sleep(runMs);
      return items;
    },
    close: async () => undefined,
  };
  const pool = createBatcher<number, number>(executor, { maxBatchSize, clock: started });
  for (let i = 0; i < 3000; i++) started.at(i * 2, () => void pool(i));
  await started.idle();
  assert.ok(isAscending(late));
});

test("items of one order key never pass each other, whatever else goes first", async () => {
  const keys = 40;
  const { stream, finish, ran, called } = rig({ orderKey: (item) => (item % 2 === 0 ? item % keys : undefined) });
  await stream(0.4, 1000);
  await finish();
  const items = ran();
  assert.equal(items.length, called());
  assert.ok(!isAscending(items));
  for (let key = 0; key < keys; key += 2) assert.ok(isAscending(items.filter((item) => item % keys === key)));

  const one = rig({ orderKey: () => 0 });
  await one.stream(0.4, 1000);
  await one.finish();
  assert.ok(isAscending(one.ran()));
});

test("groups, weights, alone and bulk keep their rules", async () => {
  const { stream, finish, batches, ran, called } = rig({
    groupKey: (item) => item % 2,
    weigh: (item) => 1 + (item % 3),
    maxBatchWeight: 15,
  });
  await stream(0.4, 1000, (item) =>
    item % 50 === 7 ? { alone: true } : item % 50 === 8 ? { priority: "bulk" } : undefined,
  );
  const fresh = batches.slice(50).flat();
  assert.ok(!isAscending(fresh));
  const bulk = fresh.filter((item) => item % 50 === 8).length;
  assert.ok(bulk <= 0.055 * fresh.length, `bulk takes its floor and no more: ${bulk} of ${fresh.length}`);
  await finish();
  assert.equal(new Set(ran()).size, called());
  for (const batch of batches) {
    assert.equal(new Set(batch.map((item) => item % 2)).size, 1);
    assert.ok(batch.reduce((sum, item) => sum + 1 + (item % 3), 0) <= 15);
    if (batch.some((item) => item % 50 === 7)) assert.equal(batch.length, 1);
  }
});

interface Guest {
  readonly tenant: string;
  readonly caller: number;
}

/** Patient callers of one tenant, each again once it is answered, beside `leavers` of another; most answers and fewest, of a caller. */
async function besideLeavers(leavers: number, leaveAfterMs: number, options: BatcherOptions<Guest, Guest>) {
  const clock = virtualClock();
  const batcher = createBatcher<Guest, Guest>(
    async (items) => {
      await clock.sleep(60);
      return items;
    },
    { maxBatchSize: 8, concurrency: 1, clock, ...options },
  );
  const answers = new Array<number>(12).fill(0);
  const patient = async (caller: number): Promise<void> => {
    while (clock.now() < 6000) await batcher({ tenant: "patient", caller }).then(() => answers[caller]!++);
  };
  const leaver = async (caller: number): Promise<void> => {
    while (clock.now() < 6000) {
      const leave = new AbortController();
      clock.after(leaveAfterMs, () => leave.abort());
      await batcher({ tenant: "leaver", caller }, { signal: leave.signal }).catch(() => undefined);
    }
  };
  answers.forEach((_, caller) => void patient(caller));
  for (let i = 0; i < leavers; i++) void leaver(i);
  await clock.idle();
  return { most: Math.max(...answers), fewest: Math.min(...answers) };
}

for (const [name, options] of Object.entries({
  "with fairKey": { fairKey: ({ tenant }: Guest) => tenant },
  without: {},
})) {
  test(`callers who leave, over and over, starve no patient caller, ${name}`, async () => {
    for (const [leavers, leaveAfterMs] of [
      [4, 20],
      [16, 23],
      [4, 70],
      [16, 100],
    ] as const) {
      const { most, fewest } = await besideLeavers(leavers, leaveAfterMs, options);
      assert.ok(fewest >= 0.8 * most, `${leavers} leave after ${leaveAfterMs} ms: ${fewest} to ${most} answers`);
    }
  });
}

test("an item that a later caller shares takes that caller's place", async () => {
  const { clock, call, stream, finish, batches } = rig({ dedupeKey: (item) => item });
  await stream(0.4, 1000);
  const buried = Array.from({ length: 2400 }, (_, i) => i).find((item) => !batches.flat().includes(item))!;
  call(undefined, buried);
  const from = batches.length;
  await new Promise<void>((resolve) => void clock.after(2 * runMs, resolve));
  assert.ok(batches.slice(from).flat().includes(buried));
  await finish();
});

let coursesThroughOverload = 0;
const courses = seedsTo(40, 2);
for (const seed of courses) {
  test(`a random course through overload settles every call once and keeps the rules (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const chance = (share: number): boolean => random() < share;
    const keys = chance(0.5) ? 1 + Math.floor(random() * 50) : 0;
    const groups = chance(0.3) ? 3 : 0;
    const { batcher, stream, finish, ended, called, ran } = rig({
      concurrency: 1 + Math.floor(random() * 3),
      maxQueueSize: chance(0.3) ? 300 : 10_000,
      ...(keys > 0 && { orderKey: (item: number) => (item % 3 === 0 ? item % keys : undefined) }),
      ...(groups > 0 && { groupKey: (item: number) => item % groups }),
      ...(chance(0.3) && { weigh: (item: number) => 1 + (item % 4), maxBatchWeight: 20 }),
      ...(chance(0.3) && { dedupeKey: (item: number) => Math.floor(item / 2) }),
      ...(chance(0.3) && { timeoutMs: 100 + 1000 * random() }),
    });
    const priorities = ["immediate", "interactive", "bulk"] as const;
    const optionsOf = (): CallOptions | undefined => ({
      ...(chance(0.2) && { priority: priorities[Math.floor(random() * 3)]! }),
      ...(chance(0.05) && { alone: true }),
      ...(chance(0.2) && { timeoutMs: 20 + 500 * random() }),
    });
    let overloads = 0;
    for (let part = 0; part < 6; part++) {
      await stream(0.1 + 1.2 * random(), 200 + 300 * random(), optionsOf);
      if (batcher.stats().overload !== null) overloads++;
    }
    if (overloads > 0) coursesThroughOverload++;
    await finish();
    assert.equal(ended.size, called());
    for (const outcome of ended.values()) assert.match(outcome, /^(?:ok|TIMEOUT|QUEUE_FULL)$/);
    const items = ran();
    assert.equal(new Set(items).size, items.length);
    for (let key = 0; key < keys; key++)
      assert.ok(isAscending(items.filter((item) => item % 3 === 0 && item % keys === key)), `key ${key}`);
    assert.equal(batcher.stats().queued, 0);
  });
}

test("most of the random courses went through standing overload", () => {
  assert.ok(coursesThroughOverload > courses.length / 2, `${coursesThroughOverload} of ${courses.length}`);
});

const storm = {
  cost: { fixedMs: 20, perItemMs: 1 },
  concurrency: 1,
  maxBatchSize: 16,
  arrivals: { pattern: "surge", ratePerS: 360, factor: 3, atMs: 4000, forMs: 10_000 },
  items: 360 * 51,
  warmUp: 0,
} as const;

for (const seen of inProof([true, false], [true])) {
  test(`a storm of retries ends within seconds, ${seen ? "callers seen to leave" : "leaving unseen"}`, async () => {
    const retries = { patienceMs: 1000, seen };
    const { goodput } = await simulate({ ...storm, retries, seed: 7 });
    assert.ok(goodput!.recoveryMs! <= 2000, `back after ${goodput!.recoveryMs} ms`);
    const during = goodput!.answeredPerS.slice(5, 14);
    assert.ok(
      during.every((answers) => answers > 0.9 * 444),
      `${during}`,
    );

    if (inProof(false, true)) return;
    const inOrder = await simulate({ ...storm, retries, seed: 7, overloadOrder: "arrival" });
    assert.equal(inOrder.goodput!.recoveryMs, Infinity);
  });
}
