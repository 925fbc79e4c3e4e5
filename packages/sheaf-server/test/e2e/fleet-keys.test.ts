import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { nats, skip } from "./nats.js";
import { get, post, until, type Reply } from "../asking.js";
import { bearer, entry, keysFile, type KeysFile } from "../tenants/keys.js";
import { temporaryFolder } from "../folder.js";
import { ready, sheaf } from "./sheaf-process.js";

const model = fileURLToPath(new URL("../../test/e2e/fixtures/gated.mjs", import.meta.url));

interface Fleet {
  readonly gateways: readonly string[];
  readonly keys: KeysFile;
  /** From now on runs wait. */
  shut(): void;
  open(): void;
}

/** Two gateways with one file of keys, and a worker that runs one item at a time and knows no keys. */
async function fleet(t: TestContext, keys: readonly object[]): Promise<Fleet> {
  const folder = temporaryFolder(t);
  const shut = join(folder, "shut");
  const file = keysFile(t, keys);
  const start = (role: string, env: Record<string, string>): Promise<string> => {
    const shared = { NATS_URL: nats.url, WARMUP_BATCHES: "0", MAX_BATCH_SIZE: "1", REQUEST_TIMEOUT_MS: "120000" };
    return ready(sheaf(t, ["serve", model, "--role", role, "--port", "0"], { ...shared, ...env }));
  };
  const env = { API_KEYS_FILE: file.path };
  const [first, second] = await Promise.all([
    start("gateway", env),
    start("gateway", env),
    start("worker", { SHUT: shut }),
  ]);
  return {
    gateways: [first, second],
    keys: file,
    shut: () => writeFileSync(shut, ""),
    open: () => rmSync(shut),
  };
}

const infer = (url: string, key: string): Promise<Reply> => post(`${url}/infer`, [1], bearer(key));

/** Waits until so many items of a tenant wait or run at a gateway, by its metrics. */
async function untilInFlight(url: string, tenant: string, count: number): Promise<void> {
  const line = `sheaf_tenant_in_flight_items{tenant="${tenant}"} ${count}\n`;
  await until(async () => (await get(`${url}/metrics`, bearer("sk-operator"))).text.includes(line));
}

const operator = entry("operator", { operator: true });

test("the gateways of a fleet know the keys of their file, and both refuse a removed one", { skip }, async (t) => {
  const { gateways, keys } = await fleet(t, [entry("a"), entry("b"), operator]);
  for (const url of gateways) {
    for (const key of ["sk-a", "sk-b"]) assert.equal((await infer(url, key)).status, 200);
    assert.equal((await infer(url, "sk-c")).status, 401);
    assert.equal((await fetch(`${url}/metrics`, { headers: bearer("sk-a") })).status, 403);
    assert.equal((await fetch(`${url}/metrics`, { headers: bearer("sk-operator") })).status, 200);
  }
  keys.write({ keys: [entry("b"), operator] });
  for (const url of gateways) {
    await until(async () => (await infer(url, "sk-a")).status === 401);
    assert.equal((await infer(url, "sk-b")).status, 200);
  }
});

test("each gateway bounds a tenant's items in flight, in its own name, and serves the others", { skip }, async (t) => {
  const { gateways, shut, open } = await fleet(t, [entry("a", { itemsInFlight: 2 }), entry("b"), operator]);
  shut();
  const taken = [];
  for (const url of gateways) {
    taken.push(infer(url, "sk-a"), infer(url, "sk-a"));
    await untilInFlight(url, "a", 2);
    const { status, headers, json } = await infer(url, "sk-a");
    assert.deepEqual([status, json.error.code], [429, "TENANT_LIMIT"]);
    assert.match(json.error.message, /^a may send at most 2 items in flight, 2 are/);
    assert.ok(Number(headers.get("retry-after")) >= 1);
    taken.push(infer(url, "sk-b"));
    await untilInFlight(url, "b", 1);
  }
  open();
  assert.deepEqual((await Promise.all(taken)).map(({ status }) => status), [200, 200, 200, 200, 200, 200]); // prettier-ignore
});

test("a tenant's flood at both gateways does not hold up another tenant at either", { skip }, async (t) => {
  const { gateways, shut, open } = await fleet(t, [entry("flood"), entry("quiet"), operator]);
  shut();
  const floodItems = 50;
  const flood = gateways.flatMap((url) => Array.from({ length: floodItems }, () => infer(url, "sk-flood")));
  for (const url of gateways) await untilInFlight(url, "flood", floodItems);
  const quiet = gateways.map((url) => infer(url, "sk-quiet"));
  for (const url of gateways) await untilInFlight(url, "quiet", 1);
  open();
  for (const { status, json } of await Promise.all(quiet)) {
    assert.equal(status, 200);
    // Few items of its own gateway's flood may run before it. All of the other's may: that gateway goes on while this one
    // gets no processor. In the order of arrival both floods would.
    assert.ok(json.output[0] < 1.5 * floodItems, `${json.output[0]} items ran before it`);
  }
  assert.ok((await Promise.all(flood)).every(({ status }) => status === 200));
});
