// Real behaviours of the built core, for any runtime.
import { codeOf, equal, numbers, sleep } from "./behaviours.mjs";

/** Of the module `sheaf`. */
export const behavioursOf = ({ BatcherError, adaptive, auto, createBatcher, fixedWindow, greedy }) => ({
  async "200 concurrent calls share batches and each gets its own result"() {
    const sizes = [];
    const double = createBatcher(
      (items) => (sizes.push(items.length), sleep(2).then(() => items.map((item) => item * 2))),
      { maxBatchSize: 50 },
    );
    equal(
      await Promise.all(numbers(200).map(double)),
      numbers(200).map((item) => item * 2),
    );
    if (sizes.length > 50 || Math.max(...sizes) > 50) throw new Error(`batches of ${sizes}`);
  },
  async "every policy answers"() {
    for (const policy of [auto(), greedy(), fixedWindow(), adaptive({ targetLatencyMs: 50 })]) {
      const batcher = createBatcher((items) => items, { policy, maxWaitMs: 5 });
      equal(await Promise.all(numbers(100).map(batcher)), numbers(100));
    }
  },
  async "an Error in a place rejects its caller only; a throw rejects all with the same error"() {
    const check = createBatcher((items) => items.map((item) => (item === 3 ? new Error("three") : item)));
    equal(
      (await check.settle(numbers(5))).map(({ status }) => status[0]),
      ["f", "f", "f", "r", "f"],
    );
    const broken = createBatcher(() => { throw new Error("all"); }); // prettier-ignore
    equal(await Promise.all(numbers(3).map((item) => codeOf(broken(item)))), ["all", "all", "all"]);
  },
  async "a wrong number of results, a full queue and a closed batcher have their codes"() {
    equal(await codeOf(createBatcher(() => [])(1)), "RESULT_COUNT");
    const narrow = createBatcher((items) => sleep(5).then(() => items), {
      maxQueueSize: 1,
      concurrency: 1,
      maxBatchSize: 1,
    });
    const codes = await Promise.all(numbers(5).map((item) => codeOf(narrow(item))));
    if (!codes.includes("QUEUE_FULL")) throw new Error(`got ${codes}`);
    await narrow.close();
    equal(await codeOf(narrow(1)), "CLOSED");
    if (!((await narrow(1).catch((error) => error)) instanceof BatcherError)) throw new Error("not a BatcherError");
  },
  async "timeouts and aborts settle the caller, and an aborted item that waits is never run"() {
    const ran = [];
    const slow = createBatcher((items) => (ran.push(...items), sleep(40).then(() => items)), {
      maxBatchSize: 1,
      concurrency: 1,
    });
    const controller = new AbortController();
    const first = slow(1);
    const late = codeOf(slow(2, { timeoutMs: 5 }));
    const gone = slow(3, { signal: controller.signal }).catch((reason) => reason);
    controller.abort("gone");
    equal([await gone, await late, await first], ["gone", "TIMEOUT", 1]);
    await slow.drain();
    equal(ran, [1]);
  },
  async "a bisection isolates the bad items"() {
    const strict = createBatcher((items) => { if (items.includes(7) || items.includes(20)) throw new Error("bad"); return items; }, { onBatchError: "bisect" }); // prettier-ignore
    const settled = await strict.settle(numbers(32));
    equal(
      numbers(32).filter((index) => settled[index].status === "rejected"),
      [7, 20],
    );
  },
  async "weights, groups, orders and duplicates hold"() {
    const batches = [];
    const batcher = createBatcher((items) => (batches.push(items), sleep(1).then(() => items)), {
      maxBatchWeight: 10, weigh: (item) => item.weight, groupKey: (item) => item.group, orderKey: (item) => item.order, dedupeKey: (item) => item.id,
    }); // prettier-ignore
    const items = numbers(60).map((index) => ({
      id: index % 50,
      weight: 1 + (index % 3),
      group: index % 2,
      order: index % 5,
    }));
    equal(
      (await batcher.many(items)).map(({ id }) => id),
      items.map(({ id }) => id),
    );
    for (const batch of batches) {
      if (batch.reduce((sum, { weight }) => sum + weight, 0) > 10) throw new Error("a batch is too heavy");
      if (new Set(batch.map(({ group }) => group)).size > 1) throw new Error("groups share a batch");
    }
  },
  async "map reads an endless source as results are taken, and closes it"() {
    let closed = false;
    async function* source() { try { for (let item = 0; ; item++) yield item; } finally { closed = true; } } // prettier-ignore
    const taken = [];
    for await (const result of createBatcher((items) => items, { maxQueueSize: 20 }).map(source())) {
      taken.push(result);
      if (taken.length === 100) break;
    }
    equal([taken, closed], [numbers(100), true]);
  },
  async "flush, drain, close and asyncDispose resolve; statistics count"() {
    const batcher = createBatcher((items) => items, { policy: fixedWindow(), maxWaitMs: 60_000 });
    const results = Promise.all(numbers(10).map(batcher));
    await batcher.flush();
    equal(await results, numbers(10));
    await batcher.drain();
    await batcher[Symbol.asyncDispose]();
    equal([batcher.stats().items.ok, batcher.stats().batches, batcher.stats().reasons.flush], [10, 1, 1]);
  },
});
