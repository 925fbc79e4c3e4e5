// What needs no vector store; integration/vector-store.test.mjs has the real ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { qdrantStore } from "../../dist/adapters/vector-store/index.js";

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
  const [first, second] = await store.query.settle([{ vector: [1] }, { vector: [2] }]);
  assert.deepEqual(first, { status: "fulfilled", value: [] });
  assert.match(String((second as PromiseRejectedResult).reason), /must have points, got null/);
  await assert.rejects(rig(null).store.query({ vector: [1] }), /reply must be an array, got null/);
});
