import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { heldBatcher } from "../support/rig.js";
import { inProof } from "../support/seeds.js";

type Priority = "immediate" | "interactive" | "bulk";
const lanes: readonly Priority[] = ["immediate", "interactive", "bulk"];

interface Item {
  readonly id: number;
  readonly key: number | undefined;
  readonly group: number;
}

type Action =
  | {
      readonly kind: "calls";
      readonly calls: readonly { key: number | undefined; group: number; priority: Priority }[];
    }
  | { readonly kind: "abort" | "finish" | "fail"; readonly which: number };

/**
 * What the core promises of order keys, lanes and groups, in the simplest words: lists that are searched from the start
 * for every batch. The core sets blocked items aside instead, and must come to the same batches.
 */
class Model {
  readonly #waiting: { item: Item; lane: number }[] = []; // in the order of their places
  readonly #held = new Set<number>();

  call(item: Item, priority: Priority): void {
    const lane = lanes.indexOf(priority);
    // Nobody overtakes an earlier item of its key: those of its group come along to its lane, ahead of it.
    const lifted = this.#ofKey(item.key).filter((entry) => entry.item.group === item.group && entry.lane > lane);
    for (const entry of lifted) {
      this.#leave(entry.item);
      this.#waiting.push({ item: entry.item, lane });
    }
    this.#waiting.push({ item, lane });
  }

  abort(item: Item): void {
    this.#leave(item);
  }

  /** The next batch of a group. */
  next(group: number, most: number): Item[] {
    const chosen: Item[] = [];
    for (const lane of lanes.keys()) {
      // Bulk fills what interactive leaves, but never goes with immediate items.
      if (lane === 2 && chosen.some(({ id }) => this.#laneOf(id) === 0)) break;
      for (const entry of this.#waiting) {
        if (entry.lane !== lane || entry.item.group !== group || chosen.length === most) continue;
        if (this.#mayGo(entry.item, chosen)) chosen.push(entry.item);
      }
    }
    return chosen;
  }

  taken(items: readonly Item[]): void {
    for (const item of items) {
      this.#leave(item);
      if (item.key !== undefined) this.#held.add(item.key);
    }
  }

  ended(items: readonly Item[]): void {
    for (const { key } of items) if (key !== undefined) this.#held.delete(key);
  }

  get groups(): Set<number> {
    return new Set(this.#waiting.map(({ item }) => item.group));
  }

  #mayGo({ id, key }: Item, chosen: readonly Item[]): boolean {
    if (key === undefined) return true;
    if (this.#held.has(key)) return false;
    return this.#ofKey(key).every(({ item }) => item.id >= id || chosen.includes(item));
  }

  #ofKey(key: number | undefined): { item: Item; lane: number }[] {
    if (key === undefined) return [];
    return this.#waiting.filter(({ item }) => item.key === key).sort((one, other) => one.item.id - other.item.id);
  }

  #laneOf(id: number): number {
    return this.#waiting.find(({ item }) => item.id === id)!.lane;
  }

  #leave({ id }: Item): void {
    const at = this.#waiting.findIndex(({ item }) => item.id === id);
    if (at >= 0) this.#waiting.splice(at, 1);
  }
}

const call = fc.record({
  key: fc.option(fc.nat(3), { nil: undefined, freq: 4 }),
  group: fc.nat(1),
  priority: fc.constantFrom<Priority>("interactive", "interactive", "interactive", "bulk", "immediate"),
});
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("calls" as const), calls: fc.array(call, { maxLength: 12 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("abort" as const), which: fc.nat(200) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constantFrom("finish" as const, "fail" as const), which: fc.nat(9) }) },
);
const scenario = fc.record({
  maxBatchSize: fc.constantFrom(1, 2, 3, 5, Infinity),
  concurrency: fc.integer({ min: 1, max: 4 }),
  grouped: fc.boolean(),
  actions: fc.array(action, { minLength: 1, maxLength: 30 }),
});

test("with items set aside for their order key, every batch is the one that a search from the start would find", async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async ({ maxBatchSize, concurrency, grouped, actions }) => {
      const { batcher, clock, runs } = heldBatcher<Item>({
        maxBatchSize,
        concurrency,
        orderKey: ({ key }) => key,
        ...(grouped ? { groupKey: ({ group }: Item) => group } : {}),
      });
      const model = new Model();
      const controllers: { readonly item: Item; readonly controller: AbortController }[] = [];
      const running: (typeof runs)[number][] = [];
      let seen = 0;

      const look = (): void => {
        for (const run of runs.slice(seen)) {
          assert.deepEqual(run.items, model.next(run.items[0]!.group, maxBatchSize));
          model.taken(run.items);
          running.push(run);
          seen++;
        }
        assert.ok(running.length <= concurrency);
        if (running.length === concurrency) return;
        for (const group of model.groups) assert.deepEqual(model.next(group, maxBatchSize), [], "a slot is free");
      };
      const end = async (which: number, how: "finish" | "fail"): Promise<void> => {
        const [run] = running.splice(which % running.length, 1);
        model.ended(run!.items);
        await (how === "finish" ? run!.finish() : run!.fail(new Error("failed")));
      };

      for (const step of actions) {
        if (step.kind === "calls") {
          for (const { key, group, priority } of step.calls) {
            const item = { id: controllers.length, key, group: grouped ? group : 0 };
            const controller = new AbortController();
            controllers.push({ item, controller });
            model.call(item, priority);
            batcher(item, { priority, signal: controller.signal }).catch(() => undefined);
          }
        } else if (step.kind === "abort") {
          const one = controllers[step.which % Math.max(1, controllers.length)];
          if (one === undefined) continue;
          model.abort(one.item);
          one.controller.abort();
        } else if (running.length > 0) {
          await end(step.which, step.kind);
        }
        await clock.settle();
        look();
      }
      while (running.length > 0) {
        await end(0, "finish");
        await clock.settle();
        look();
      }
      assert.equal(batcher.stats().queued, 0);
    }),
    { numRuns: inProof(500, 100), seed: 20_260_102 },
  );
});
