import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { BatcherError, createBatcher, greedy } from "../../dist/index.js";
import { assertCode, statuses, values, watchAll } from "../support/rig.js";

interface Row {
  readonly id: number;
}
const row = (id: number): Row => ({ id });
const byId = (rows: readonly Row[]): Map<number, Row> => new Map(rows.map((each) => [each.id, each]));

/** A rejection arrives a few promises later than a result. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** Gives the warnings of a test. */
function warnings(t: { after(done: () => void): void }): string[] {
  const warn = mock.method(console, "warn", () => undefined);
  t.after(() => warn.mock.restore());
  return new Proxy([], { get: (_, key) => Reflect.get(warn.mock.calls.map(({ arguments: [text] }) => String(text)), key) }); // prettier-ignore
}

test("a Map gives every caller the result of its own key, whatever the order", async () => {
  const load = createBatcher((ids: number[]) => byId(ids.map(row).reverse()));
  assert.deepEqual(await Promise.all([3, 1, 2].map((id) => load(id))), [row(3), row(1), row(2)]);
});

test("a missing key is undefined, an extra entry is ignored, and callers of one key share its value", async (t) => {
  const warned = warnings(t);
  const load = createBatcher(async (_: number[]) => byId([row(1), row(99)]));
  const [first, missing, second] = await load.many([1, 2, 1]);
  assert.deepEqual([first, missing], [row(1), undefined]);
  assert.equal(first, second);
  assert.equal(warned.length, 0);
});

test("resultKey names the key of an item", async () => {
  const load = createBatcher((users: { id: number }[]) => byId(users.map(({ id }) => row(id))), {
    resultKey: ({ id }) => id,
  });
  assert.deepEqual(await load.many([{ id: 2 }, { id: 1 }]), [row(2), row(1)]);
});

test("an entry may hold undefined: it is a result, not a missing one", async () => {
  const save = createBatcher((ids: number[]) => new Map(ids.map((id) => [id, undefined])), { onMissing: "error" });
  assert.deepEqual(await save.many([1, 2]), [undefined, undefined]);
});

test('onMissing: "error" rejects with MISSING_RESULT, and only those whose key is missing', async () => {
  const load = createBatcher((_: number[]) => byId([row(1)]), { onMissing: "error", name: "users" });
  const calls = watchAll(load, [1, 2]);
  await settled();
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected"]);
  const error = assertCode(calls[1], "MISSING_RESULT");
  assert.deepEqual(error.details, { key: 2 });
  assert.match(error.message, /users: .*Map.* 2/);
});

test("an Error in the Map rejects the callers of its key", async () => {
  const bad = new Error("row 2 is locked");
  const load = createBatcher((_: number[]) => new Map<number, string | Error>([[1, "a"], [2, bad]])); // prettier-ignore
  const calls = watchAll(load, [2, 1, 2]);
  await settled();
  assert.deepEqual(statuses(calls), ["rejected", "fulfilled", "rejected"]);
  assert.equal(calls[0]!.reason, bad);
});

test("a batch function that sorts or empties its array still answers every caller with its own", async () => {
  const load = createBatcher((ids: number[]) => {
    ids.sort((a, b) => a - b);
    const found = byId(ids.map(row));
    ids.length = 0;
    return found;
  });
  assert.deepEqual(await load.many([3, 1, 2]), [row(3), row(1), row(2)]);
});

test("a resultKey that throws fails that call only", async () => {
  const load = createBatcher((_: number[]) => byId([row(1), row(3)]), {
    resultKey: (id) => {
      if (id === 2) throw new RangeError("no key for 2");
      if (id === 4) throw "odd"; // eslint-disable-line no-throw-literal, @typescript-eslint/only-throw-error
      return id;
    },
  });
  const calls = watchAll(load, [1, 2, 3, 4]);
  await settled();
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled", "rejected"]);
  assert.ok(calls[1]!.reason instanceof RangeError);
  assert.match(String(calls[3]!.reason), /resultKey threw "odd"/);
});

test("a batch of which no item is in the Map warns once; an empty Map says that nothing was found", async (t) => {
  const warned = warnings(t);
  const load = createBatcher((ids: number[]) => new Map(ids.map((id) => [String(id), row(id)])), { name: "users" });
  assert.deepEqual(await load.many([1, 2]), [undefined, undefined]);
  await load.many([3]);
  assert.equal(warned.length, 1);
  assert.match(warned[0]!, /users: .*resultKey/);
  const empty = createBatcher((_: number[]) => new Map<number, Row>());
  assert.equal(await empty(1), undefined);
  assert.equal(warned.length, 1);
});

test("arrays stay positional, whatever resultKey and onMissing say", async () => {
  const double = createBatcher((ids: number[]) => ids.map((id) => 2 * id), {
    resultKey: () => "the same",
    onMissing: "error",
  });
  assert.deepEqual(await double.many([1, 2]), [2, 4]);
});

test("a part of a bisection is answered by key too", async () => {
  const load = createBatcher(
    (ids: number[]) => {
      if (ids.includes(3)) throw new Error("3 is bad");
      return byId(ids.map(row).reverse());
    },
    { onBatchError: "bisect", policy: greedy() },
  );
  const calls = watchAll(load, [1, 2, 3, 4]);
  await settled();
  assert.deepEqual(values(calls), [row(1), row(2), undefined, row(4)]);
  assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled", "rejected", "fulfilled"]);
});

test("wrong options are refused", () => {
  const run = (ids: number[]): number[] => ids;
  assert.throws(() => createBatcher(run, { resultKey: "id" as never }), /resultKey must be a function, got "id"/);
  assert.throws(() => createBatcher(run, { onMissing: "null" as never }), /onMissing must be "undefined" or "error"/);
  assert.ok(new BatcherError("MISSING_RESULT", "m") instanceof Error);
});
