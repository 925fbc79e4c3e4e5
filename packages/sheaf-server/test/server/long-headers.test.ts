import assert from "node:assert/strict";
import { test } from "node:test";
import { embeddingApi, proxying } from "../proxy/proxying.js";
import { entry, keysFile } from "../tenants/keys.js";
import { doubling, serving } from "./serving.js";

const length = 100_000;
/** Texts on which an expression may go back and forth. */
const fills = [" ", ",", "; ", "/", ".", "::1"];
const headers = [
  ["connection", "a", "b"],
  ["content-type", "application/json", "b"],
  ["content-type", "application/json;charset", "b"],
  ["content-type", "application/json;charset=", ";"],
  ["content-encoding", "", "b"],
  ["authorization", "Bearer", "\n"],
  ["authorization", "Bearer ", " b"],
  ["host", "localhost", "b"],
  ["host", "[::1]:", "b"],
  ["x-request-timeout-ms", "1", "b"],
  ["x-sheaf-priority", "bulk", "b"],
  ["x-request-id", "a", "\n"],
  ["traceparent", "00-", "b"],
  ["x-tenant", "a", "\n"],
  ["origin", "http://", "b"],
  ["if-none-match", "a", "b"],
  ["accept", "a/", "b"],
  ["range", "bytes=", "b"],
  ["access-control-request-headers", "a", "\n"],
  ["inference-header-content-length", "1", "b"],
] as const;

// A quadratic expression takes a minute for each of them. Node bounds headers to 16 KiB, of which twenty would still silence a server.
test(
  "a header or path of 100,000 characters is read in one pass, by server and proxy",
  { timeout: 60_000 },
  async (t) => {
    const { path: apiKeysFile } = keysFile(t, [entry("a")]);
    const server = await serving(t, [doubling()], { apiKeysFile, tenantBy: "header" });
    const api = await embeddingApi(t);
    const proxy = await proxying(t, api.baseURL, { tenantBy: "header" });
    for (const { app, url } of [
      { app: server.app, url: "/infer" },
      { app: proxy.app, url: "/v1/embeddings" },
      { app: proxy.app, url: "/v1/models" },
    ])
      for (const fill of fills) {
        const long = fill.repeat(length / fill.length);
        for (const [name, before, after] of headers) {
          const own = {
            "content-type": "application/json",
            authorization: "Bearer sk-a",
            [name]: before + long + after,
          };
          const { statusCode } = await app.inject({ method: "POST", url, headers: own, payload: '{"model":"m","input":["a"]}' }); // prettier-ignore
          assert.ok(statusCode >= 200, name);
        }
        const { statusCode } = await app.inject({ method: "GET", url: `/v1/${encodeURI(long)}b?${encodeURI(long)}` });
        assert.ok(statusCode >= 200);
      }
  },
);
