import assert from "node:assert/strict";
import { test } from "node:test";
import { doubling, serving } from "../serving.js";
import { embeddingTexts, judgingTexts } from "../text-models.js";

test("/api/embed gives vectors of length 1 for a text and for a list, /api/embeddings the model's own", async (t) => {
  const { post } = await serving(t, [embeddingTexts]);
  const options = { num_ctx: 2048, temperature: 0.5, mirostat: null };
  const { status, json } = await post("/api/embed", {
    model: "embed:latest",
    input: ["abc", "abc"],
    keep_alive: "5m",
    options,
  });
  assert.deepEqual([status, json.model, json.prompt_eval_count, json.load_duration], [200, "embed", 4, 0]);
  assert.deepEqual(json.embeddings, [
    [0.6, 0.8],
    [0.6, 0.8],
  ]);
  assert.ok(Number.isInteger(json.total_duration) && json.total_duration > 0);
  assert.equal((await post("/api/embed", { model: "embed", input: "abc" })).json.embeddings.length, 1);
  assert.deepEqual((await post("/api/embeddings", { model: "embed", prompt: "abc" })).json, { embedding: [3, 4] });
});

test("name:latest is the model of that name, unless a model has the whole name", async (t) => {
  const { post } = await serving(t, [{ ...embeddingTexts, name: "a" }, { ...embeddingTexts, name: "a:latest" }, { ...embeddingTexts, name: "b" }]); // prettier-ignore
  for (const [asked, answered] of [
    ["a", "a"],
    ["a:latest", "a:latest"],
    ["b:latest", "b"],
  ])
    // prettier-ignore
    assert.equal((await post("/api/embed", { model: asked, input: "x" })).json.model, answered);
  const { status, json } = await post("/api/embed", { model: "c:latest", input: "x" });
  assert.deepEqual([status, json], [404, { error: 'There is no model "c"; served are: a, a:latest, b.' }]);
});

test("an option or a stream that would change the reply is refused by name", async (t) => {
  const { post } = await serving(t, [embeddingTexts]);
  const ask = (more: object) => post("/api/embed", { model: "embed", input: "x", ...more });
  for (const more of [{ stream: false }, { options: { num_ctx: 9 } }, { options: null }, { truncate: true }])
    assert.equal((await ask(more)).status, 200, JSON.stringify(more));
  for (const [more, message] of [
    [{ stream: true }, /^stream must be false/],
    [{ options: { num_ctx: 8 } }, /^options\.num_ctx must be at least 9, where the model cuts texts, got 8/],
    [{ options: { temprature: 1 } }, /"temprature" is not known here; did you mean temperature\?/],
    [{ options: [] }, /^options must be an object of options/],
    [{ prompt: "x" }, /"prompt" is not known here/],
    [{ input: "a text of more than nine", truncate: false }, /^input has more than 9 tokens/],
  ] as const) {
    const { status, json } = await ask(more);
    assert.equal(status, 422);
    assert.match(json.error, message);
  }
});

test("/api/tags lists the models that embed, /api/show describes any, /api/version is Sheaf's own", async (t) => {
  const { get, post } = await serving(t, [doubling(), embeddingTexts, judgingTexts]);
  const { models } = (await get("/api/tags")).json;
  assert.deepEqual(
    models.map(({ name, model }: { name: string; model: string }) => [name, model]),
    [["embed:latest", "embed:latest"]],
  );
  assert.ok(!Number.isNaN(Date.parse(models[0].modified_at)));
  assert.equal(typeof models[0].size, "number");
  assert.match(models[0].digest, /^[0-9a-f]{64}$/);
  const { json } = await post("/api/show", { model: "embed:latest" });
  assert.deepEqual(json.capabilities, ["embedding"]);
  assert.deepEqual([json.model_info["sheaf.embedding_length"], json.model_info["sheaf.context_length"]], [2, 9]);
  assert.deepEqual((await post("/api/show", { name: "judge", verbose: true })).json.capabilities, []);
  assert.equal((await post("/api/show", { model: "none" })).status, 404);
  assert.match((await get("/api/version")).json.version, /^\d+\.\d+\.\d+/);
});
