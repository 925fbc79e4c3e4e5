import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../dist/index.js";
import { doubling, serving } from "./serving.js";
import { embeddingTexts, rankingPairs } from "./text-models.js";

/** One item a run, and none but the first before `release()`; `order` is what has run. */
function inOrder<Model extends ModelDefinition>(model: Model, nameOf: (item: any) => string) {
  let release!: () => void;
  let start!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const started = new Promise<void>((resolve) => (start = resolve));
  const order: string[] = [];
  const run = async (items: any[], context: any): Promise<any> => {
    order.push(...items.map(nameOf));
    start();
    await released;
    return (model.run as (items: any[], context: any) => unknown)(items, context);
  };
  return { ...model, run, order, release: () => release(), started };
}

const asText = (item: string | { text: string }): string => (typeof item === "string" ? item : item.text);
const numbers = (first: number) => [{ name: "input", shape: [1, 3], datatype: "FP32", data: [first, 0, 0] }];

interface Route {
  readonly path: string;
  readonly model: ModelDefinition;
  readonly nameOf: (item: any) => string;
  /** A request for a thing of this name. */
  readonly body: (name: string, priority: unknown) => object;
}

const embed = { model: embeddingTexts, nameOf: asText };
const rank = { model: rankingPairs, nameOf: asText };
const routes: readonly Route[] = [
  { path: "/v1/embeddings", ...embed, body: (input, priority) => ({ input, priority }) },
  { path: "/v1/embed", ...embed, body: (text, priority) => ({ texts: [text], priority }) },
  { path: "/v2/embed", ...embed, body: (text, priority) => ({ texts: [text], priority }) },
  { path: "/rerank", ...rank, body: (text, priority) => ({ query: "q", documents: [text], priority }) },
  { path: "/v1/rerank", ...rank, body: (text, priority) => ({ query: "q", documents: [text], priority }) },
  { path: "/v2/rerank", ...rank, body: (text, priority) => ({ query: "q", documents: [text], priority }) },
];

/** Sends the requests one after the other while a first one runs. @returns the names in the order of their runs. */
async function runOrder(
  t: Parameters<typeof serving>[0],
  { path, model, nameOf }: Pick<Route, "path" | "model" | "nameOf">,
  requests: readonly (readonly [body: object, headers?: Record<string, string>])[],
): Promise<string[]> {
  const held = inOrder(model, nameOf);
  const server = await serving(t, [held], { maxBatchSize: 1 });
  const answers: Promise<{ status: number; text: string }>[] = [];
  for (const [index, [body, headers]] of requests.entries()) {
    answers.push(server.post(path, body, headers));
    if (index === 0) await held.started;
    // The next one comes once this one waits.
    else while (server.models.all[0]!.stats().queued !== index) await new Promise((resolve) => setImmediate(resolve));
  }
  held.release();
  for (const { status, text } of await Promise.all(answers)) assert.equal(status, 200, text);
  return held.order;
}

for (const route of routes) {
  test(`priority in the body of ${route.path}: above 0 is bulk, 0 and below change nothing, the header goes first`, async (t) => {
    const { body } = route;
    const order = await runOrder(t, route, [
      [body("running", 0)],
      [body("later", 7)],
      [body("none", undefined)],
      [body("null", null)],
      [body("zero", 0)],
      [body("below", -3)],
      [body("header", 7), { "x-sheaf-priority": "interactive" }],
      [body("bulk", 0), { "x-sheaf-priority": "bulk" }],
    ]);
    assert.deepEqual(order, ["running", "none", "null", "zero", "below", "header", "later", "bulk"]);
    const server = await serving(t, [route.model]);
    for (const wrong of ["1", 0.5, true, 1e300]) {
      const { status, text } = await server.post(route.path, body("x", wrong));
      assert.equal(status, 422, text);
      assert.match(text, /priority must be an integer/);
    }
  });
}

test("parameters.priority of /v2 keeps Triton's meaning, and X-Sheaf-Priority goes before it", async (t) => {
  const request = (first: number, priority: number) => ({ inputs: numbers(first), parameters: { priority } });
  const route = {
    path: "/v2/models/double/infer",
    model: doubling(),
    nameOf: (item: Float32Array) => String(item[0]),
  };
  const order = await runOrder(t, route, [
    [request(1, 0)],
    [request(2, 2)],
    [request(3, 0)],
    [request(4, 1)],
    [request(5, 2), { "x-sheaf-priority": "immediate" }],
    [request(6, 1), { "x-sheaf-priority": "bulk" }],
  ]);
  assert.deepEqual(order, ["1", "4", "5", "3", "2", "6"]);
});
