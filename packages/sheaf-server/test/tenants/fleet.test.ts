import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startNats, whyNoNats, type RunningNats } from "../../../../test/support/nats-server.mjs";
import { sheaf } from "../e2e/sheaf-process.js";
import { entry, keysFile } from "./keys.js";

const skip: string | false = whyNoNats() ?? false;
let nats: RunningNats;
before(async () => {
  if (skip === false) nats = await startNats();
});
after(() => nats?.stop());

test("a gateway with keys says in its log that tenants take no turns in a fleet", { skip }, async (t) => {
  const gateway = sheaf(t, ["serve", "mlp", "--role", "gateway", "--port", "0"], {
    NATS_URL: nats.url,
    API_KEYS_FILE: keysFile(t, [entry("a")]).path,
  });
  await Promise.race([
    gateway.ended,
    (async () => {
      while (!gateway.output.stdout.includes("no turns")) await new Promise((resolve) => setTimeout(resolve, 20));
    })(),
  ]);
  const lines = gateway.output.stdout.split("\n").filter((line) => line.includes("no turns"));
  assert.equal(lines.length, 1, gateway.output.stdout);
  assert.match(lines[0]!, /keys, lanes and bounds of tenants hold at each gateway, and no turns/);
  // A warning.
  assert.equal((JSON.parse(lines[0]!) as { level: unknown }).level, 40);
});

test("TENANT_BY=header is refused for a fleet", async (t) => {
  const server = sheaf(t, ["serve", "mlp", "--port", "0"], { NATS_URL: "nats://127.0.0.1:1", TENANT_BY: "header" });
  assert.equal(await server.ended, 2);
  assert.match(server.output.stderr, /TENANT_BY=header is not for a fleet: its queue has no tenants/);
});
