import assert from "node:assert/strict";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { answering, servingFolder } from "./models/folder-server.js";
import { doubling, measuringTexts, serving } from "./serving.js";

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

test("with a key every route but the open ones shows 401, and without one none does", async (t) => {
  const statuses = async (apiKey: string | undefined): Promise<Map<string, boolean>> => {
    const { json } = await (await serving(t, [doubling()], { apiKey })).app.inject("/openapi.json").then((reply) => ({
      json: reply.json() as { paths: Record<string, Record<string, { responses: object; security?: unknown[] }>> },
    }));
    return new Map(
      Object.entries(json.paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { responses }]) => [`${method} ${path}`, "401" in responses] as const),
      ),
    );
  };
  const withKey = await statuses("secret");
  const health = ["get /livez", "get /readyz", "get /health", "get /v2/health/live", "get /v2/health/ready"];
  const open = [...health, "get /.well-known/live", "get /.well-known/ready", "get /api/version"];
  assert.deepEqual(
    [...withKey]
      .filter(([, shown]) => !shown)
      .map(([route]) => route)
      .sort(),
    open.sort(),
  );
  assert.ok([...(await statuses(undefined)).values()].every((shown) => !shown));
});

test("bodies and headers show the limits of the server's settings and models", async (t) => {
  const settings = { requestTimeoutMs: 2000, maxInputs: 7, queueMaxSize: 50, maxTextChars: 90 };
  const server = await serving(t, [doubling(), measuringTexts()], settings);
  const { paths } = (await server.get("/openapi.json")).json;
  const bodyOf = (path: string): any => paths[path].post.requestBody.content["application/json"].schema;
  const [one, several, bare] = bodyOf("/infer").anyOf;
  assert.deepEqual([bare.type, bare.minItems, bare.maxItems], ["array", 3, 3]);
  assert.deepEqual(one.properties.input, bare);
  assert.deepEqual([several.properties.inputs.minItems, several.properties.inputs.maxItems], [1, 7]);
  const { model, input, dimensions } = bodyOf("/v1/embeddings").properties;
  assert.deepEqual(model.anyOf[0].enum, ["measure"]);
  assert.deepEqual([input.anyOf[0].minLength, input.anyOf[0].maxLength, input.anyOf[1].maxItems], [1, 90, 7]);
  assert.deepEqual(dimensions.anyOf[0].enum, [2]);
  const header = paths["/rerank"].post.parameters.find(({ name }: { name: string }) => name === "x-request-timeout-ms");
  assert.deepEqual([header.schema.exclusiveMinimum, header.schema.maximum], [0, 2000]);
  const [name] = paths["/v2/models/{model}/infer"].post.parameters.filter((one: { in: string }) => one.in === "path");
  assert.deepEqual(name.schema.enum, ["double", "measure"]);
  assert.ok("413" in paths["/v2/models/{model}/infer"].post.responses);
});

test("/v2 infer allows no parameter, name, datatype or deadline that the server refuses", async (t) => {
  const server = await serving(t, [doubling()], { requestTimeoutMs: 2000 });
  const { paths } = (await server.get("/openapi.json")).json;
  const path = "/v2/models/{model}/infer";
  const { properties } = paths[path].post.requestBody.content["application/json"].schema;
  const { name, datatype, shape, parameters } = properties.inputs.items.properties;
  assert.deepEqual(
    [parameters.additionalProperties, Object.keys(parameters.properties)],
    [false, ["binary_data_size"]],
  );
  assert.deepEqual([name.enum, properties.outputs.items.properties.name.enum], [["input"], ["output"]]);
  assert.ok(datatype.enum.includes("FP32") && datatype.enum.includes("BYTES"));
  assert.equal(properties.parameters.properties.timeout.maximum, 2_000_000);
  const input = { name: "input", datatype: "FP32", shape: [1, 3], data: [1, 2, 3] };
  const infer = (body: object) => server.post(path.replace("{model}", "double"), { inputs: [input], ...body });
  assert.equal(
    (await infer({ parameters: { timeout: properties.parameters.properties.timeout.maximum } })).status,
    200,
  );
  assert.equal((await infer({ parameters: { timeout: 2_000_001 } })).status, 422);
  assert.equal((await infer({ inputs: [{ ...input, parameters: { content_type: "x" } }] })).status, 422);
  assert.equal((await infer({ inputs: [{ ...input, shape: [2 ** 53, 3] }] })).status, 400);
  assert.equal(shape.items.maximum, 2 ** 53 - 1);
});

test("load and unload allow in /openapi.json exactly the bodies that the server takes", async (t) => {
  const server = await servingFolder(t, { "a.mjs": answering("a") });
  const { paths } = (await server.get("/openapi.json")).json;
  const bodyOf = (action: string): any =>
    paths[`/v2/repository/models/{model}/${action}`].post.requestBody.content["application/json"].schema;
  for (const action of ["load", "unload"]) {
    const { additionalProperties, properties } = bodyOf(action);
    assert.deepEqual([additionalProperties, properties.parameters.additionalProperties], [false, false], action);
    const refused = [{ name: "b" }, { parameters: { config: "{}" } }, { parameters: [] }, { parameters: null }];
    for (const body of refused)
      assert.equal((await server.post(`/v2/repository/models/a/${action}`, body)).status, 422, JSON.stringify(body));
  }
  assert.deepEqual(bodyOf("load").properties.parameters.properties, {});
  assert.equal(bodyOf("unload").properties.parameters.properties.unload_dependents.enum[0], false);
});

test("the description is sent again only where it has changed, and has one address beside the page's", async (t) => {
  const server = await serving(t, [doubling()]);
  const first = await server.get("/openapi.json");
  const etag = first.headers.get("etag")!;
  const again = await fetch(`${server.url}/openapi.json`, { headers: { "if-none-match": etag } });
  assert.deepEqual([again.status, await again.text()], [304, ""]);
  assert.deepEqual((await server.get("/docs/json")).json, first.json);
  assert.equal((await server.get("/docs/yaml")).status, 404);
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
