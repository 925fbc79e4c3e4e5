import assert from "node:assert/strict";
import { test } from "node:test";
import { serving } from "../server/serving.js";
import { embeddingTexts, judgingTexts, rankingPairs, tokenVectors } from "../server/text-models.js";
import { bearer, entry, keysFile } from "./keys.js";

const text = { name: "text", shape: [2], datatype: "BYTES", data: ["a", "b"] };

/** A request to every route that runs a model, and its number of items. */
const requests: readonly (readonly [path: string, body: object, items: number])[] = [
  ["/infer", { inputs: ["a", "b"] }, 2],
  ["/infer/{model}", { inputs: ["a", "b"] }, 2],
  ["/v1/embeddings", { model: "embed", input: ["a", "b"] }, 2],
  ["/rerank", { query: "a", texts: ["a", "b"], model: "pairs" }, 2],
  ["/v1/rerank", { query: "a", documents: ["a", "b"], model: "pairs" }, 2],
  ["/v2/rerank", { query: "a", documents: ["a", "b"], model: "pairs" }, 2],
  ["/v1/embed", { texts: ["a", "b"] }, 2],
  ["/v2/embed", { texts: ["a", "b"] }, 2],
  ["/embed", { inputs: ["a", "b"] }, 2],
  ["/embed_all", { inputs: ["a", "b"] }, 2],
  ["/predict", { inputs: [["a"], ["b"]] }, 2],
  ["/api/embed", { model: "embed", input: ["a", "b"] }, 2],
  ["/api/embeddings", { model: "embed", prompt: "a" }, 1],
  ["/vectors", { texts: ["a", "b"] }, 2],
  ["/v2/models/{model}/infer", { inputs: [text] }, 2],
  ["/v2/models/{model}/versions/{version}/infer", { inputs: [text] }, 2],
];
const runsNoModel = ["/api/show", "/v2/repository/index"];

test("on every route a key's lane, its bounds and its counts apply", async (t) => {
  const keys = requests.map((_, i) => entry(`k${i}`, { itemsPerSecond: 0.001 }));
  const file = keysFile(t, [...keys, entry("op", { operator: true })]);
  const models = [embeddingTexts, tokenVectors, judgingTexts, rankingPairs];
  const server = await serving(t, models, { apiKeysFile: file.path });
  const { paths } = (await server.get("/openapi.json")).json as { paths: Record<string, object> };
  const posts = Object.keys(paths).filter((path) => "post" in paths[path]!);
  assert.deepEqual(posts.sort(), [...requests.map(([path]) => path), ...runsNoModel].sort(), "each route is here");

  for (const [i, [template, body]] of requests.entries()) {
    const path = template.replace("{model}", "embed").replace("{version}", "1");
    const headers = { ...bearer(`sk-k${i}`), "x-sheaf-priority": "immediate" };
    const first = await server.post(path, body, headers);
    assert.deepEqual(
      [first.status, first.headers.get("x-sheaf-priority")],
      [200, "interactive"],
      `${path} ${first.text}`,
    );
    const second = await server.post(path, body, headers);
    assert.equal(second.status, 429, path);
    assert.match(second.text, new RegExp(`k${i} may send 0\\.001 items a second`), path);
    assert.ok(Number(second.headers.get("retry-after")) > 900, path);
    assert.equal((await server.post(path, body, bearer("sk-none"))).status, 401, path);
  }
  const { text: metrics } = await server.get("/metrics", bearer("sk-op"));
  for (const [i, [path, , items]] of requests.entries())
    for (const outcome of ["ok", "rejected"])
      assert.ok(metrics.includes(`sheaf_tenant_items_total{tenant="k${i}",outcome="${outcome}"} ${items}\n`), path);
});
