// The clients of other embedding and rerank services, unmodified, against the built server: those of each language in one
// process. Weaviate and Milvus are servers of their own; here they are the requests that their sources send.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { writeEncoderFolder } from "../support/encoder-folder.mjs";
import { runProgram, runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { serve } from "./lib/serving.mjs";

const model = "use-lite";
const given = {
  model,
  texts: ["The cat sits outside", "A man is playing guitar", "The new movie is awesome"],
  many: [],
};
const shape = { layers: 1, width: 16, heads: 2, hidden: 32, vocabulary: 100, maxTokens: 16 };
const close = [];
let url;
let expected;

before(async () => {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-moods-"));
  close.push(() => rmSync(folder, { recursive: true, force: true }));
  const moods = writeEncoderFolder(join(folder, "moods"), { ...shape, labels: ["glad", "sad", "angry"] });
  url = await serve({ after: (end) => close.unshift(end) }, model, moods);
  const { data } = await post("/v1/embeddings", { model, input: given.texts });
  const scores = await post("/rerank", { query: given.texts[1], texts: given.texts });
  expected = { vectors: data.map(({ embedding }) => embedding), ranks: scores };
});
after(async () => {
  for (const end of close) await end();
});

async function post(path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200, path);
  return response.json();
}

/** A model's last bits depend on which texts share its run. */
const assertVectors = (actual, wanted = expected.vectors) => {
  assert.deepEqual(
    actual.map(({ length }) => length),
    wanted.map(({ length }) => length),
  );
  for (const [i, vector] of actual.entries())
    for (const [j, value] of vector.entries())
      assert.ok(Math.abs(value - wanted[i][j]) < 1e-5, `vector ${i}, number ${j}: ${value} beside ${wanted[i][j]}`);
};
const assertErrors = (errors, messages) => {
  for (const [name, message] of Object.entries(messages)) assert.match(errors[name], message, name);
};
const unknown = /There is no model \\?["']none\\?["']; served are: use-lite, moods/;
const empty = /must be a text that is not empty/;

const checks = {
  cohere(reply) {
    assertVectors(reply.vectors);
    assertVectors(reply.v2);
    assertVectors(reply.base64.map(floatsOf));
    assert.deepEqual(reply.ranks, expected.ranks);
    assert.deepEqual(reply.v2_ranks, expected.ranks.slice(0, 2));
    assert.deepEqual(reply.documents, expected.ranks.map(({ index }) => given.texts[index])); // prettier-ignore
    assertErrors(reply.errors, { empty, unknown, types: /embedding_types: use-lite gives no int8/ });
  },
  ollama(reply) {
    assertVectors(reply.vectors);
    assertVectors([reply.one], expected.vectors.slice(0, 1));
    assert.deepEqual([reply.models, reply.capabilities], [["use-lite:latest"], ["embedding"]]);
    assertErrors(reply.errors, { empty, unknown, context: /options\.num_ctx must be at least 128/ });
  },
  "langchain-cohere"(reply) {
    assertVectors(reply.vectors);
    assertVectors([reply.one], expected.vectors.slice(0, 1));
    assert.deepEqual(reply.ranks, expected.ranks);
    assertErrors(reply.errors, { empty });
  },
  "langchain-ollama"(reply) {
    assertVectors(reply.vectors);
    assertVectors([reply.one], expected.vectors.slice(0, 1));
    assertErrors(reply.errors, { empty, validated: /Available local models: use-lite:latest/ });
  },
  "@langchain/ollama"(reply) {
    assertVectors(reply.vectors);
    assertVectors([reply.one], expected.vectors.slice(0, 1));
    assertErrors(reply.errors, { empty, unknown });
  },
  async "huggingface-hub"(reply) {
    assertVectors(reply.vectors);
    assertVectors(reply.several);
    const labels = await post("/predict", { inputs: "w1 w2" });
    assert.deepEqual(reply.labels.map(({ label, score }) => ({ score, label })), labels.slice(0, 2)); // prettier-ignore
    assertErrors(reply.errors, { empty, prompt: /prompt_name must be absent: use-lite has no prompts/ });
  },
  "llama-index-embeddings-text-embeddings-inference"(reply) {
    assertVectors(reply.vectors);
    assertVectors([reply.one], expected.vectors.slice(0, 1));
    assert.deepEqual(reply.ranks, expected.ranks);
  },
  litellm({ embeddings, reranks, errors }) {
    const providers = ["cohere", "hosted_vllm", "infinity", "jina_ai", "ollama"];
    assert.deepEqual(Object.keys(embeddings).sort(), providers);
    for (const vectors of Object.values(embeddings)) assertVectors(vectors);
    const rankers = ["cohere", "hosted_vllm", "huggingface", "infinity", "jina_ai", "together_ai"];
    assert.deepEqual(Object.keys(reranks).sort(), rankers);
    for (const ranks of Object.values(reranks)) assert.deepEqual(ranks, expected.ranks);
    assertErrors(errors, { empty, unknown });
  },
};
checks["cohere-ai"] = checks.cohere;

const floatsOf = (base64) => {
  const bytes = Buffer.from(base64, "base64");
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
};

const programs = {
  Python: { run: () => runPython("other_services_client.py", [url], given), skip: skipWithoutPython },
  JavaScript: { run: () => runProgram([process.execPath, "other-services.mjs", url], given) },
};
for (const [language, { run, skip = false }] of Object.entries(programs)) {
  test(`the clients of other services in ${language}: /v1/embeddings' vectors, /rerank's order, the server's messages`, { skip }, async (t) => {
    const { version, replies } = await run();
    for (const [name, reply] of Object.entries(replies[0])) {
      t.diagnostic(`${name} ${version[name]}`);
      await t.test(name, () => checks[name](reply));
    }
  }); // prettier-ignore
}

/** As Go's client sends it: without a content type unless one is given. */
async function send(method, path, body, headers = {}) {
  const sent = request(new URL(path, url), { method, headers });
  sent.end(body === undefined ? undefined : Buffer.from(JSON.stringify(body)));
  const [response] = await once(sent, "response");
  return { status: response.statusCode, text: await text(response) };
}

// usecases/modulecomponents/clients/transformers/transformers.go of github.com/weaviate/weaviate
test("Weaviate's module text2vec-transformers: ready, meta, and the requests of its client", async () => {
  for (const path of ["/.well-known/ready", "/.well-known/live"])
    assert.deepEqual(await send("GET", path), { status: 204, text: "" });
  const meta = await send("GET", "/meta");
  assert.ok(meta.status === 200 && !Array.isArray(JSON.parse(meta.text)), "a map");
  for (const task_type of ["passage", "query"]) {
    const config = { pooling_strategy: "masked_mean", task_type };
    const body = { text: given.texts[0], dims: 0, vector: null, error: "", config };
    const { status, text: json } = await send("POST", "/vectors", body);
    const reply = JSON.parse(json);
    assert.deepEqual([status, reply.text, reply.dims, reply.dim], [200, given.texts[0], 512, 512]);
    assertVectors([reply.vector], expected.vectors.slice(0, 1));
  }
  const headers = { "content-type": "application/json" };
  const several = await send("POST", "/vectors", { texts: given.texts, config: { task_type: "passage" } }, headers);
  const { vectors, dims } = JSON.parse(several.text);
  assert.equal(dims, 512);
  assertVectors(vectors);
  const wrong = await send("POST", "/vectors", { text: "", dims: 0, vector: null, error: "", config: {} });
  assert.equal(wrong.status, 422);
  assert.match(JSON.parse(wrong.text).error, empty);
});

// internal/util/function/models/tei/tei.go of github.com/milvus-io/milvus
test("Milvus' TEI provider: the requests of its client", async () => {
  const headers = { "content-type": "application/json", authorization: "Bearer none" };
  const inputs = given.texts;
  for (const more of [{}, { truncate: true }, { truncate: true, truncation_direction: "Right" }]) {
    const { status, text: json } = await send("POST", "/embed", { inputs, ...more }, headers);
    assert.equal(status, 200);
    assertVectors(JSON.parse(json));
  }
  const ranked = await send("POST", "/rerank", { query: inputs[1], texts: inputs, truncate: true }, headers);
  assert.deepEqual(JSON.parse(ranked.text), expected.ranks);
});
