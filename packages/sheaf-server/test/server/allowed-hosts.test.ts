import assert from "node:assert/strict";
import { get, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { Client, credentials } from "@grpc/grpc-js";
import { hostCheck, hostWarning } from "../../dist/http/allowed-hosts.js";
import { createServer } from "../../dist/index.js";
import type { Settings } from "../../dist/settings/settings.js";
import { embeddingApi, proxying } from "../proxy/proxying.js";
import { service } from "./grpc-serving.js";
import { doubling, serving } from "./serving.js";

async function statusFor(url: string, path: string, host: string): Promise<number> {
  const [response] = (await once(get(url + path, { headers: { host } }), "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode!;
}

const local = ["localhost:8000", "LOCALHOST", "a.localhost", "127.0.0.1", "127.8.9.1:1", "[::1]:8000", "localhost."];
const foreign = ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "127.evil.example", "10.0.0.1", "evil.example#localhost"]; // prettier-ignore

test("on a loopback address every route answers to loopback hosts and to ALLOWED_HOSTS alone", async (t) => {
  const { url } = await serving(t, [doubling()], { allowedHosts: ["models.example", "other.example:81"] });
  for (const path of ["/livez", "/v1/models", "/", "/docs", "/nothing", "/v2/models/double"]) {
    assert.equal(await statusFor(url, path, "evil.example"), 421, path);
    assert.notEqual(await statusFor(url, path, "localhost"), 421, path);
  }
  for (const host of [...local, "models.example", "Models.example:8000", "other.example:81"])
    assert.equal(await statusFor(url, "/v1/models", host), 200, host);
  for (const host of [...foreign, "other.example:82", "a.models.example"])
    assert.equal(await statusFor(url, "/v1/models", host), 421, host);
});

test("the proxy and gRPC check hosts too", async (t) => {
  const api = await embeddingApi(t);
  const proxy = await proxying(t, api.baseURL);
  assert.equal(await statusFor(proxy.url, "/v1/models", "evil.example"), 421);
  assert.equal(api.others.length, 0);
  assert.equal(await statusFor(proxy.url, "/v1/models", "localhost"), 200);

  const server = await serving(t, [doubling()], { grpcPort: 0 });
  const { path, requestSerialize, responseDeserialize } = service["ServerLive"]!;
  for (const [authority, code] of [
    ["evil.example", 7],
    ["localhost", undefined],
  ] as const) {
    const client = new Client(server.grpcAddress!, credentials.createInsecure(), {
      "grpc.default_authority": authority,
    });
    t.after(() => client.close());
    const ended = await new Promise((resolve) =>
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, {}, (error) => resolve(error?.code)),
    );
    assert.equal(ended, code, authority);
  }
});

test("off loopback hosts are checked where ALLOWED_HOSTS is set, and addresses pass", () => {
  const open = { host: "0.0.0.0", apiKey: undefined };
  assert.equal(hostCheck({ ...open, allowedHosts: [] }), undefined);
  assert.equal(hostCheck({ host: "127.0.0.1", apiKey: undefined, allowedHosts: ["*"] }), undefined);
  const check = hostCheck({ ...open, allowedHosts: ["models.example"] })!;
  for (const host of ["models.example", "localhost", "10.0.0.1:8000", "[fe80::1]", undefined])
    assert.equal(check(host), undefined, host);
  assert.equal(check("evil.example")?.status, 421);
});

/** Starts a server, and gives its warnings. */
async function warnings(t: TestContext, own: Partial<Settings>): Promise<{ said: unknown[]; port: string }> {
  const server = await createServer({ models: [doubling()], settings: { port: 0, logLevel: "silent", ...own } });
  t.after(() => server.close({ graceMs: 0 }));
  const said: unknown[] = [];
  server.app.log.warn = (...words: unknown[]) => void said.push(words[0]);
  return { said, port: new URL(await server.listen()).port };
}

test("a server whose requests may take longer than its shutdown warns of it", async (t) => {
  const { said } = await warnings(t, { requestTimeoutMs: 30_000 });
  assert.deepEqual(said, ["REQUEST_TIMEOUT_MS (30000) exceeds SHUTDOWN_GRACE_MS (25000): a shutdown cuts off requests that could still be answered."]); // prettier-ignore
});

test("a server without a key that takes any host warns of it, once", async (t) => {
  assert.equal(hostWarning({ host: "127.0.0.1", apiKey: undefined, allowedHosts: [] }), undefined);
  assert.equal(hostWarning({ host: "0.0.0.0", apiKey: "k", allowedHosts: [] }), undefined);
  assert.equal(hostWarning({ host: "0.0.0.0", apiKey: undefined, allowedHosts: ["a"] }), undefined);
  const { said, port } = await warnings(t, { host: "0.0.0.0" });
  for (const host of ["evil.example", "other.example"])
    assert.equal(await statusFor(`http://127.0.0.1:${port}`, "/livez", host), 200);
  assert.deepEqual(said, ["The server answers every Host and has no API_KEY: set ALLOWED_HOSTS to the server's names."]); // prettier-ignore
});
