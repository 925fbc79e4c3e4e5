import assert from "node:assert/strict";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { createServer } from "../../dist/server/server.js";
import { startNats, whyNoNats } from "../../../../test/support/nats-server.mjs";
import { doubling } from "./serving.js";

const skip = whyNoNats() ?? false;

test("a server of a fleet leaves NATS last, when its own clients are gone", { skip }, async (t) => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const [host, port] = nats.url.split(":") as [string, string];
  const toNats = new Set<Socket>();
  const way = createTcpServer((near) => {
    const far = connect(Number(port), host);
    near.pipe(far).pipe(near);
    near.on("error", () => far.destroy());
    far.on("error", () => near.destroy());
    toNats.add(near);
    near.on("end", () => toNats.delete(near)).on("close", () => toNats.delete(near));
  });
  await new Promise<void>((resolve) => way.listen(0, "127.0.0.1", resolve));
  t.after(() => way.close());
  const natsUrl = `nats://127.0.0.1:${(way.address() as AddressInfo).port}`;
  const settings = { natsUrl, role: "all", port: 0, logLevel: "silent" } as const;
  const server = await createServer({ models: [doubling()], settings });
  const url = await server.listen();
  await server.ready();
  const body = JSON.stringify([1, 2, 3]);
  const response = await fetch(`${url}/infer`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  assert.equal(response.status, 200);
  let openToNats: number | undefined;
  server.app.server.once("close", () => (openToNats = toNats.size));
  assert.equal(await server.close(), true);
  assert.equal(openToNats, 1, "connections to NATS when the last client had gone");
});
