import assert from "node:assert/strict";
import { test } from "node:test";
import { doubling, gated, serving } from "../serving.js";
import { embeddingTexts } from "../text-models.js";

/** As Weaviate's module sends it: the fields of the reply are there and empty. */
const asWeaviate = (config: object, text = "abc"): object => ({ text, dims: 0, vector: null, error: "", config });

test("/vectors answers Weaviate's module, one text or several, with a content type or none", async (t) => {
  const { url, post } = await serving(t, [doubling(), embeddingTexts]);
  const body = asWeaviate({ pooling_strategy: "masked_mean", task_type: "passage" });
  const expected = { text: "abc", dim: 2, dims: 2, vector: [3, 4] };
  assert.deepEqual((await post("/vectors", body)).json, expected);
  // A stream has no content type of its own.
  const init = { method: "POST", body: new Blob([JSON.stringify(body)]).stream(), duplex: "half" };
  assert.deepEqual(await (await fetch(`${url}/vectors/`, init as RequestInit)).json(), expected);
  const several = await post("/vectors", { texts: ["abc", "a"], config: { task_type: "query" } });
  assert.deepEqual(several.json, { vectors: [[3, 4], [1, 4]], dims: 2 }); // prettier-ignore
  const other = await fetch(`${url}/vectors`, {
    method: "POST",
    body: "{}",
    headers: { "content-type": "text/plain" },
  });
  assert.equal(other.status, 415);
});

test("dimensions cuts the vector; another pooling than the model's own is refused", async (t) => {
  const { post } = await serving(t, [embeddingTexts, { ...embeddingTexts, name: "mean", output: { kind: "vector", length: 2 } }]); // prettier-ignore
  assert.deepEqual((await post("/vectors", asWeaviate({ dimensions: 1 }))).json.vector, [1]);
  assert.equal((await post("/vectors", asWeaviate({ pooling_strategy: "cls" }))).status, 200);
  const refused = await post("/vectors", { ...asWeaviate({ pooling_strategy: "cls" }), model: "mean" });
  assert.equal(refused.status, 422);
  assert.match(refused.json.error, /^config\.pooling_strategy must be "masked_mean"/);
  assert.match((await post("/vectors", asWeaviate({ dimensions: 3 }))).json.error, /^config\.dimensions must be/);
  assert.match((await post("/vectors", asWeaviate({}, ""))).json.error, /^text must be a text that is not empty/);
  assert.match((await post("/vectors", { text: "a", texts: ["a"] })).json.error, /either text or texts/);
});

test("/meta names the embedding models; live and ready say what /livez and /readyz say, without a key", async (t) => {
  const server = await serving(t, [doubling(), embeddingTexts], { apiKey: "secret" });
  await server.ready();
  assert.equal((await server.get("/meta")).status, 401);
  const { models } = (await server.get("/meta", { authorization: "Bearer secret" })).json;
  assert.deepEqual(models, [{ name: "embed", dims: 2, max_tokens: 9 }]);
  for (const path of ["/.well-known/live", "/.well-known/ready"]) {
    const { status, text } = await server.get(path);
    assert.deepEqual([status, text], [204, ""], path);
  }
  assert.equal((await server.get("/api/version")).status, 200);
  assert.equal((await server.get("/api/tags")).status, 401);
});

test("ready is 503 until every model is warm, while live answers", async (t) => {
  const model = gated();
  const server = await serving(t, [{ ...model, warmUpItem: [1, 2, 3] }]);
  const statuses = async (): Promise<number[]> =>
    Promise.all(["live", "ready"].map(async (path) => (await server.get(`/.well-known/${path}`)).status));
  assert.deepEqual(await statuses(), [204, 503]);
  model.release();
  await server.ready();
  assert.deepEqual(await statuses(), [204, 204]);
});
