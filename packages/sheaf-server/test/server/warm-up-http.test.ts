import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { warmUpHttp } from "../../dist/server/http/lifecycle/warm-up-http.js";
import { defaultSettings, type Settings } from "../../dist/server/settings.js";

const never = new Promise<void>(() => undefined);

/** Requests that this process answered meanwhile. */
async function requestsOf(settings: Settings, loaded: Promise<unknown>): Promise<number> {
  let requests = 0;
  const count = (): unknown => requests++;
  subscribe("http.server.request.start", count);
  try {
    await warmUpHttp(settings, loaded);
  } finally {
    unsubscribe("http.server.request.start", count);
  }
  return requests;
}

test("answers its own requests while models load, a bounded number, and leaves nothing open", async () => {
  assert.equal(await requestsOf(defaultSettings, never), 3000);
  const open = (): string[] => process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP"));
  // A handle that has closed is listed for some turns more.
  for (let looks = 0; open().length > 0 && looks < 500; looks++) await sleep(10);
  assert.deepEqual(open(), []);
});

test("ends when the models have loaded, or have failed to", async () => {
  assert.ok((await requestsOf(defaultSettings, Promise.resolve())) < 100);
  assert.ok((await requestsOf(defaultSettings, Promise.reject(new Error("no model")))) < 100);
});

test("does nothing where models are not warmed up, or where requests become spans", async () => {
  assert.equal(await requestsOf({ ...defaultSettings, warmupBatches: 0 }, never), 0);
  const api = Symbol.for("opentelemetry.js.api.1");
  const registered = globalThis as Record<symbol, unknown>;
  registered[api] = { trace: {} };
  try {
    assert.equal(await requestsOf(defaultSettings, never), 0);
  } finally {
    delete registered[api];
  }
});

test("ends where its own requests are refused", async () => {
  const requests = await requestsOf({ ...defaultSettings, maxBodyBytes: 100 }, never);
  assert.ok(requests < 100, "each refusal closes its connection");
});
