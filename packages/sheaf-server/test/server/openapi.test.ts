import assert from "node:assert/strict";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { doubling, serving } from "./serving.js";

test("/openapi.json is valid OpenAPI 3.1 and shows every route", async (t) => {
  const server = await serving(t, [doubling()], { apiKey: "secret" });
  const { json } = await server.get("/openapi.json");
  const { valid, errors } = await new Validator().validate(structuredClone(json));
  assert.ok(valid, JSON.stringify(errors));
  assert.equal(json.openapi, "3.1.0");
  for (const path of [
    "/infer",
    "/infer/{model}",
    "/v1/embeddings",
    "/v1/models",
    "/health",
    "/livez",
    "/readyz",
    "/metrics",
  ])
    assert.ok(path in json.paths, path);
  for (const status of ["200", "400", "413", "415", "422", "429", "500", "503", "504"])
    assert.ok(status in json.paths["/infer"].post.responses, status);
  assert.deepEqual(json.security, [{ key: [] }]);
});

test("the page at /docs loads nothing from elsewhere", async (t) => {
  const server = await serving(t, [doubling()]);
  const page = await server.get("/docs/");
  assert.equal(page.status, 200);
  const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link!);
  assert.ok(links.length >= 3);
  for (const link of links) {
    const url = new URL(link, `${server.url}/docs/`);
    assert.equal(url.origin, server.url, link);
    assert.equal((await fetch(url)).status, 200, link);
  }
  // The browser itself refuses anything else, whatever the scripts try.
  const policy = page.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'self'/);
  assert.doesNotMatch(policy, /https?:/);
});
