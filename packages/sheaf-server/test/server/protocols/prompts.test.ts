import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../../dist/index.js";
import { fronts, serving } from "../serving.js";

interface Prompted {
  readonly text: string;
  readonly prompt?: string;
  readonly cut?: string;
}

/** Keeps the items that it gets; a text of more than 9 characters is cut. */
function noting(prompts: Readonly<Record<string, string>>): ModelDefinition & { readonly items: unknown[] } {
  const items: unknown[] = [];
  return {
    name: "noting",
    input: { kind: "text", maxTokens: 9, prompts },
    output: { kind: "vector", length: 2 },
    items,
    run: (texts: (string | Prompted)[]) => {
      items.push(...texts);
      return texts.map((item) => {
        const text = typeof item === "string" ? item : item.text;
        return { vector: Float32Array.of(text.length, 4), tokens: 2, truncated: text.length > 9 };
      });
    },
  };
}

test("prompt_name and input_type choose the model's prompt; a prompt that it lacks is refused", async (t) => {
  const model = noting({ query: "query: ", passage: "passage: " });
  const server = await serving(t, [model], { warmupBatches: 0 });
  const sent = async (path: string, body: object): Promise<unknown> => {
    model.items.length = 0;
    const { status, text } = await server.post(path, body);
    // Without what is undefined, which an item from a front does not have.
    return status === 200 ? JSON.parse(JSON.stringify(model.items[0])) : text;
  };
  const prompted = (prompt: string): Prompted => ({ text: "x", prompt });
  assert.equal(await sent("/embed", { inputs: "x" }), "x");
  assert.deepEqual(await sent("/embed", { inputs: "x", prompt_name: "query" }), prompted("query: ")); // prettier-ignore
  assert.match(String(await sent("/embed", { inputs: "x", prompt_name: "none" })), /prompt_name must be one of query, passage/); // prettier-ignore
  for (const [type, prompt] of Object.entries({ query: "query: ", search_query: "query: ", document: "passage: ", search_document: "passage: " })) {
    const body = { model: "noting", input: "x", input_type: type };
    assert.deepEqual(await sent("/v1/embeddings", body), prompted(prompt), type);
  } // prettier-ignore
  assert.deepEqual(await sent("/v1/embed", { texts: ["x"], input_type: "search_document" }), prompted("passage: ")); // prettier-ignore
  for (const [type, prompt] of Object.entries({ query: "query: ", passage: "passage: " })) {
    const sentText = await sent("/vectors", { text: "x", config: { task_type: type } });
    assert.deepEqual(sentText, prompted(prompt), `Weaviate's ${type}`);
    const task = await sent("/v1/embeddings", { input: "x", task: `retrieval.${type}` });
    assert.deepEqual(task, prompted(prompt), `Jina's ${type}`);
  }
  assert.equal(await sent("/vectors", { text: "x", config: { pooling_strategy: "masked_mean" } }), "x");
  assert.match(
    String(await sent("/vectors", { text: "x", config: { task_type: "other" } })),
    /config\.task_type must be/,
  );
  assert.match(String(await sent("/v1/embed", { texts: ["x"], input_type: "clustering" })), /input_type must be a type that noting has a prompt for/); // prettier-ignore
  model.items.length = 0;
  await server.post("/rerank", { query: "a", texts: ["b"] });
  assert.deepEqual(
    model.items.map((item) => (item as Prompted).prompt),
    ["query: ", "passage: "],
  );
});

test("a model without prompts takes any input_type, and refuses a prompt_name", async (t) => {
  const model = noting({});
  const server = await serving(t, [model], { warmupBatches: 0 });
  assert.equal((await server.post("/v1/embed", { texts: ["x"], input_type: "clustering" })).status, 200);
  assert.deepEqual(model.items, ["x"]);
  const { status, text } = await server.post("/embed", { inputs: "x", prompt_name: "query" });
  assert.equal(status, 422);
  assert.match(text, /prompt_name must be absent: noting has no prompts/);
});

test("a text of too many tokens is cut on the side that the caller names, or refused where AUTO_TRUNCATE is false", async (t) => {
  const model = noting({});
  const server = await serving(t, [model], { warmupBatches: 0, autoTruncate: false });
  const long = "a text that is long";
  for (const [path, body, refused] of [
    ["/infer", { input: long }, "The text"],
    ["/embed", { inputs: long }, "inputs"],
    ["/v1/embeddings", { model: "noting", input: ["x", long] }, "input[1]"],
    ["/rerank", { query: long, texts: ["x"] }, "query"],
  ] as const) {
    const { status, text } = await server.post(path, body);
    assert.equal(status, 422, path);
    assert.ok(text.includes(`"${refused} has more than 9 tokens, and AUTO_TRUNCATE is false."`), text);
  }
  const several = await server.post("/infer", { inputs: ["x", long] });
  assert.equal(several.json.outputs[1].error.message, "The text has more than 9 tokens, and AUTO_TRUNCATE is false.");
  const statistics = await server.get("/v2/models/noting/stats");
  const { success, fail } = statistics.json.model_stats[0].inference_stats;
  // A front refuses what the hub has run.
  assert.deepEqual([success.count, fail.count], fronts === 1 ? [1, 4] : [5, 0]);
  assert.equal((await server.post("/embed", { inputs: long, truncate: true })).status, 200);
  model.items.length = 0;
  const left = { inputs: long, truncate: true, truncation_direction: "Left" };
  assert.equal((await server.post("/embed", left)).status, 200);
  assert.equal((model.items[0] as Prompted).cut, "left");
  assert.equal((await server.post("/v2/embed", { texts: [long], truncate: "START" })).status, 200);
  assert.match((await server.post("/embed", { inputs: long, truncate: false })).text, /truncate is false/);
});
