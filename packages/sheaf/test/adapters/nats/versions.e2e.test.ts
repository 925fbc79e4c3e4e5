import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { routeOf, versionsOf } from "../../../dist/adapters/nats/queue/versions.js";
import { Rig, needsNats, numbers, until, waiting } from "./rig.js";

const rig = new Rig();

type Told = readonly [item: number, version: string];

/** A worker whose results say which version ran. */
const start = (queue: string, version: string, more: object = {}) =>
  rig.worker<number, Told>(
    queue,
    async (items) => {
      await sleep(2);
      return items.map((item) => [item, version]);
    },
    { version, serves: "numbers", ...more },
  );

test("the version with the highest generation is the current one, then that with more slots", () => {
  const of = (route: string, generation: number, slots: number, isServing = true) => ({
    id: route,
    maxBatchSize: 1,
    runMs: 0,
    runSize: 0,
    route,
    generation,
    slots,
    isServing,
  });
  const routes = (...infos: ReturnType<typeof of>[]): string[] => versionsOf(infos).map(({ route }) => route);
  assert.deepEqual(routes(of("a", 0, 2), of("b", 1, 1)), ["b", "a"]);
  assert.deepEqual(routes(of("a", 1, 1), of("b", 1, 1), of("b", 0, 1)), ["b", "a"]);
  assert.deepEqual(routes(of("b", 0, 1), of("a", 0, 1)), ["a", "b"], "every front end finds the same one");
  assert.deepEqual(routes(of("a", 5, 1, false), of("b", 0, 1)), ["b"], "one that does not serve is none");
  assert.notEqual(routeOf("x", "1"), routeOf("x", "2"));
  assert.notEqual(routeOf("x", undefined), routeOf("x", "undefined"));
});

for (const durability of ["file", "none"] as const)
  test(
    `a lone worker of another version gets nothing; with as many slots its version takes over as a whole (durability ${durability})`,
    needsNats,
    async () => {
      const queue = rig.newQueue();
      const front = await rig.frontEnd<number, Told>(queue, { serves: "numbers", durability });
      const old = [await start(queue, "1", { durability }), await start(queue, "1", { durability })];
      await front.ready();
      await until(() => front.workers().length === 2, "both are known");
      const warnings: string[] = [];
      const onWarning = (message: string): void => void warnings.push(message);
      const newer = await start(queue, "2", { durability, onWarning });
      await until(() => front.otherWorkers().length === 1, "the new one is known");
      const versionsOfAnswers = async (): Promise<Set<string>> =>
        new Set((await Promise.all(numbers(50).map((i) => front(i)))).map(([, version]) => version));
      assert.deepEqual(await versionsOfAnswers(), new Set(["1"]));
      await until(() => warnings.length > 0, "it says so");
      assert.match(warnings[0]!, /this worker serves version 2, others version 1 on 2 slots; it gets no items until/);
      assert.equal(newer.worker.unavailableReason, undefined, "it is ready to take over");
      await start(queue, "2", { durability });
      await until(() => front.workers()[0]!.version === "2", "it takes over");
      assert.deepEqual(await versionsOfAnswers(), new Set(["2"]));
      await until(
        () => old.every(({ worker }) => worker.unavailableReason !== undefined),
        "the old ones know that they are not asked any more",
      );
      assert.match(old[0]!.worker.unavailableReason!, /version 2 has taken over from this worker's version 1; end it/);
    },
  );

test(
  "a rolling update under load: nothing refused, and no answer of the old version once the new one has all",
  needsNats,
  async () => {
    const queue = rig.newQueue();
    const fronts = [
      await rig.frontEnd<number, Told>(queue, { serves: "numbers" }),
      await rig.frontEnd<number, Told>(queue, { serves: "numbers" }),
    ];
    const workers = [await start(queue, "1"), await start(queue, "1"), await start(queue, "1")];
    await Promise.all(fronts.map((front) => front.ready()));
    const seen: string[] = [];
    let isLoaded = true;
    const calls: Promise<void>[] = [];
    const load = async (): Promise<void> => {
      for (let item = 0; isLoaded; item++) {
        const at = seen.length;
        const call = fronts[item % 2]!(item).then(([own, version]) => {
          assert.equal(own, item);
          seen[at] = version;
        });
        seen.push("");
        calls.push(call);
        await sleep(3);
      }
    };
    const loading = load();
    for (const { worker } of workers) {
      await worker.drain();
      await start(queue, "2");
      await sleep(100);
    }
    await until(() => fronts.every((front) => front.workers().length === 3), "all are updated");
    assert.ok(fronts.every((front) => front.workers().every(({ version }) => version === "2")));
    const after = seen.length;
    await sleep(100);
    isLoaded = false;
    await loading;
    await Promise.all(calls);
    assert.deepEqual(new Set(seen), new Set(["1", "2"]));
    assert.deepEqual(new Set(seen.slice(after)), new Set(["2"]));
  },
);

test("items that wait for a version whose last worker ends go to the next version", needsNats, async () => {
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, Told>(queue, { serves: "numbers" });
  let go: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  const old = await rig.worker<number, Told>(
    queue,
    async (items) => (await held, items.map((item) => [item, "1"] as const)),
    {
      version: "1",
      serves: "numbers",
      maxBatchSize: 1,
    },
  );
  await front.ready();
  const answers = Promise.all(numbers(30).map((i) => front(i)));
  await until(async () => (await waiting(front)) === 30, "all are accepted");
  await start(queue, "2");
  const drained = old.worker.drain();
  go();
  await drained;
  const versions = (await answers).map(([, version]) => version);
  assert.equal(versions.filter((version) => version === "").length, 0);
  assert.ok(versions.filter((version) => version === "2").length >= 25, "what waited runs on the new version");
  await until(async () => (await waiting(front)) === 0, "nothing stays in the queue");
});

test("a worker of another shape beside the right one gets nothing, and says so", needsNats, async () => {
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, Told>(queue, { serves: "numbers" });
  await start(queue, "1");
  await front.ready();
  const stray = await rig.worker(queue, (items: number[]) => items, { serves: "words" });
  await until(() => front.otherWorkers().length === 1, "it is known");
  const answers = await Promise.all(numbers(50).map((i) => front(i)));
  assert.ok(answers.every(([, version]) => version === "1"));
  await until(() => stray.worker.unavailableReason !== undefined, "it says so");
  assert.match(stray.worker.unavailableReason!, /this worker serves words, others of this name serve numbers/);
});

test(
  "a front end whose workers all serve something else warns once, and takes calls when one fits",
  needsNats,
  async () => {
    const queue = rig.newQueue();
    const warnings: string[] = [];
    const front = await rig.frontEnd<number, unknown>(queue, {
      serves: "numbers",
      onWarning: (message) => void warnings.push(message),
    });
    await rig.worker(queue, (items: number[]) => items, { serves: "words" });
    await rig.worker(queue, (items: number[]) => items, { serves: "words" });
    await until(() => front.otherWorkers().length === 2, "both are known");
    assert.deepEqual(warnings, [
      `sheaf: the queue ${queue}: this front end calls numbers, its workers serve words; start all with the same model.`,
    ]);
    await rig.worker(queue, (items: number[]) => items, { serves: "numbers" });
    await front.ready();
    assert.equal(await front(1), 1);
    assert.equal(warnings.length, 1);
  },
);
