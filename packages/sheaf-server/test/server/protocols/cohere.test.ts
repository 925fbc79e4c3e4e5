import assert from "node:assert/strict";
import { test } from "node:test";
import { serving } from "../serving.js";
import { embeddingTexts, rankingPairs } from "../text-models.js";

test("/v1/embed gives bare vectors, and named ones where types are asked for; /v2/embed always named ones", async (t) => {
  const { post } = await serving(t, [embeddingTexts]);
  const body = { texts: ["abc", "a"], model: "embed", input_type: "search_document", truncate: null };
  const vectors = [[3, 4], [1, 4]]; // prettier-ignore
  const first = (await post("/v1/embed", body)).json;
  assert.deepEqual([first.embeddings, first.texts, first.response_type], [vectors, body.texts, "embeddings_floats"]);
  assert.deepEqual(first.meta, { api_version: { version: "1" }, billed_units: { input_tokens: 4 } });
  const named = (await post("/v1/embed", { ...body, embedding_types: ["float"] })).json;
  assert.deepEqual([named.embeddings, named.response_type], [{ float: vectors }, "embeddings_by_type"]);
  const second = (await post("/v2/embed", body)).json;
  assert.deepEqual([second.embeddings, second.meta.api_version], [{ float: vectors }, { version: "2" }]);
});

test("/v2/embed takes the texts as inputs too, each of one text", async (t) => {
  const { post } = await serving(t, [embeddingTexts]);
  const inputs = ["abc", "a"].map((text) => ({ content: [{ type: "text", text }] }));
  const { json } = await post("/v2/embed", { model: "embed", inputs });
  assert.deepEqual([json.embeddings, json.texts], [{ float: [[3, 4], [1, 4]] }, ["abc", "a"]]); // prettier-ignore
  const image = { content: [{ type: "image_url", image_url: { url: "data:," } }] };
  for (const [wrong, path] of [
    [[image], "inputs[0].content[0].type"],
    [[{ content: [...inputs[0]!.content, ...inputs[1]!.content] }], "inputs[0].content"],
    [[...inputs, { content: [{ type: "text" }] }], "inputs[2]"],
    [[], "inputs"],
  ] as const) {
    const { status, json } = await post("/v2/embed", { inputs: wrong });
    assert.deepEqual([status, json.error.param], [422, path], json.message);
  }
  assert.equal((await post("/v1/embed", { inputs })).status, 422, "v1 has none");
});

test("base64 is the float32 of the vector; output_dimension cuts it", async (t) => {
  const { post } = await serving(t, [embeddingTexts]);
  const { json } = await post("/v2/embed", { texts: ["abc"], embedding_types: ["base64", "float"] });
  const bytes = Buffer.from(json.embeddings.base64[0], "base64");
  assert.deepEqual([bytes.readFloatLE(0), bytes.readFloatLE(4), bytes.length], [3, 4, 8]);
  assert.deepEqual(json.embeddings.float, [[3, 4]]);
  const short = await post("/v2/embed", { texts: ["abc"], output_dimension: 1 });
  assert.deepEqual(short.json.embeddings, { float: [[1]] });
});

test("truncate NONE refuses a text that is too long; its message is where Cohere's clients look, with the path", async (t) => {
  const { post } = await serving(t, [embeddingTexts]);
  const { status, json } = await post("/v2/embed", { texts: ["a", "more than nine"], truncate: "NONE" });
  assert.equal(status, 422);
  assert.match(json.message, /^texts\[1\] has more than 9 tokens, and truncate is "NONE"/);
  assert.deepEqual([json.detail, json.error.message, json.error.param], [json.message, json.message, "texts[1]"]);
});

test("documents are ranked in the form of Cohere, Jina and vLLM on every rerank route; texts in TEI's", async (t) => {
  const { post } = await serving(t, [embeddingTexts, rankingPairs]);
  const body = { model: "pairs", query: "abc", documents: ["xyz", { text: "cab", id: 7 }, "a"], top_n: 2 };
  for (const [path, hasDocuments] of [
    ["/rerank", true],
    ["/v1/rerank", true],
    ["/v2/rerank", false],
  ] as const) {
    // prettier-ignore
    const { status, json } = await post(path, body);
    assert.equal(status, 200, JSON.stringify(json));
    assert.deepEqual([json.model, json.usage], ["pairs", { prompt_tokens: 9, total_tokens: 9 }]);
    assert.equal(typeof json.id, "string");
    const results = [
      { index: 1, relevance_score: 3, ...(hasDocuments && { document: { text: "cab", id: 7 } }) },
      { index: 2, relevance_score: 1, ...(hasDocuments && { document: { text: "a" } }) },
    ];
    assert.deepEqual(json.results, results, path);
    const other = (await post(path, { ...body, top_n: 0, return_documents: !hasDocuments })).json.results;
    assert.deepEqual([other.length, "document" in other[0]], [3, !hasDocuments], path);
  }
  const tei = { model: "pairs", query: "abc", texts: ["xyz", "cab"], top_n: 1 };
  assert.deepEqual((await post("/rerank", tei)).json, [{ index: 1, score: 3 }]);
});

test("max_tokens_per_doc may not be less than where the model cuts texts: it would give other scores", async (t) => {
  const { post } = await serving(t, [rankingPairs]);
  const body = { query: "a", documents: ["a"], max_tokens_per_doc: 128 };
  assert.equal((await post("/v2/rerank", body)).status, 200);
  assert.equal((await post("/v2/rerank", { ...body, max_tokens_per_doc: null })).status, 200);
  const { status, json } = await post("/v2/rerank", { ...body, max_tokens_per_doc: 127 });
  assert.deepEqual([status, json.error.param], [422, "max_tokens_per_doc"]);
  // vLLM's other limits: obeyed or refused by name, and never passed over.
  const limited = async (fields: object): Promise<unknown> => {
    const { status, json } = await post("/v1/rerank", { query: "a", documents: ["a"], ...fields });
    return status === 200 ? status : json.error.param;
  };
  assert.equal(await limited({ max_tokens_per_query: 128, truncate_prompt_tokens: -1, truncation_side: "right" }), 200);
  for (const field of ["max_tokens_per_query", "truncate_prompt_tokens"])
    assert.equal(await limited({ [field]: 127 }), field);
  assert.equal(await limited({ truncation_side: "left" }), "truncation_side");
});
