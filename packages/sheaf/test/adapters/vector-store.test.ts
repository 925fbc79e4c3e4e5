// What needs no vector store; test/integration/vector-store.test.mjs has the real ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { lanceDbStore, qdrantStore } from "../../dist/adapters/vector-store/index.js";
import { endsOf } from "../support/rig.js";

function rig(answers: unknown = []) {
  let requests = 0;
  const client = {
    upsert: async () => void requests++,
    queryBatch: async () => (requests++, answers as { points: unknown[] }[]),
  };
  return { store: qdrantStore(client, { collection: "c" }), requests: () => requests };
}

for (const [name, vector] of Object.entries({
  "no vector": undefined,
  "an empty one": [],
  "NaN in it": [1, Number.NaN],
  "Infinity in it": new Float32Array([1, Infinity]),
  "a null in it": [null],
  "a length that is not a number of items": { length: Number.NaN },
  "a length beyond what is there": { length: 1e9 },
  "a text": "abc",
})) {
  test(`${name}: the call fails at once, and nothing is sent`, async () => {
    const { store, requests } = rig();
    await assert.rejects(store.upsert({ id: 1, vector: vector as never }), TypeError);
    await assert.rejects(store.query({ vector: vector as never }), TypeError);
    assert.equal(requests(), 0);
  });
}

test("no point and no query at all fail with what is missing", async () => {
  const { store } = rig();
  await assert.rejects(store.upsert(null as never), /a point needs an id/);
  await assert.rejects(store.query(null as never), /vector must be an array of numbers/);
});

test("invalid answers: an error of the query whose answer it is, or of all", async () => {
  const { store } = rig([{ points: [] }, null]);
  const [first, second] = endsOf(await store.query.settle([{ vector: [1] }, { vector: [2] }]));
  assert.deepEqual(first, []);
  assert.match(String(second), /must have points, got null/);
  await assert.rejects(rig(null).store.query({ vector: [1] }), /reply must be an array, got null/);
});

test("one merge at a time into a LanceDB table, from its newest version, however many stores and handles there are", async () => {
  let stored: number[] = [];
  /** As LanceDB: a merge reads the version of its handle, and adds what that lacks to the newest one. */
  const handle = (): any => {
    let seen = stored;
    const execute = async (rows: { id: number }[]): Promise<void> => {
      const known = new Set(seen);
      await new Promise((resolve) => setImmediate(resolve));
      seen = stored = [...stored, ...rows.map(({ id }) => id).filter((id) => !known.has(id))];
    };
    const fields = [
      { name: "id", type: {} },
      { name: "vector", type: { listSize: 2 } },
    ];
    return {
      name: "shared",
      schema: async () => ({ fields }),
      checkoutLatest: async () => void (seen = stored),
      mergeInsert: () => ({ whenMatchedUpdateAll: () => ({ whenNotMatchedInsertAll: () => ({ execute }) }) }),
      vectorSearch: () => undefined,
    };
  };
  const stores = [handle(), handle()].map((table) =>
    lanceDbStore(table, { upserts: { concurrency: 2, maxBatchSize: 1, maxWaitMs: 0 } }),
  );
  for (let round = 0; round < 3; round++)
    await Promise.all(stores.flatMap((store) => [1, 2, 1].map((id) => store.upsert({ id, vector: [1, 2] }))));
  assert.deepEqual(
    [...stored].sort((a, b) => a - b),
    [1, 2],
  );
});
