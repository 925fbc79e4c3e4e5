import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { ready, sheaf } from "./sheaf-process.js";

const worker = fileURLToPath(new URL("../load/fixtures/per-item-worker.js", import.meta.url));

/** What was sent has reached a route once the server asks for the rest. */
async function begun(t: TestContext, url: string, bodyBytes: number): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  t.after(() => socket.destroy());
  const head = ["POST /infer HTTP/1.1", "host: localhost", "content-type: application/json", "expect: 100-continue"];
  socket.write(`${head.join("\r\n")}\r\ncontent-length: ${bodyBytes}\r\n\r\n`);
  await once(socket, "data");
  return socket;
}

test("a client that hangs up, in its upload or while it waits, does not count as a failure of the server: nothing is logged above debug", async (t) => {
  const waiting = ["--scheduler-strategy", "fifo", "--max-wait-ms", "60000", "--warmup-batches", "0"];
  const server = sheaf(t, ["serve", worker, "--port", "0", "--log-level", "debug", ...waiting]);
  const url = await ready(server);
  const saidSo = async (times: number): Promise<void> => {
    while (server.output.stdout.split('"msg":"The client hung up."').length <= times)
      await once(server.child.stdout!, "data");
  };
  (await begun(t, url, 100)).destroy();
  await saidSo(1);

  const socket = await begun(t, url, 2);
  socket.write("10");
  let metrics = "";
  while (!/^sheaf_queue_items\{.*\} 1$/m.test(metrics)) metrics = await (await fetch(`${url}/metrics`)).text();
  socket.destroy();
  await saidSo(2);

  server.child.kill("SIGTERM");
  assert.equal(await server.ended, 0);
  for (const line of server.output.stdout.trim().split("\n")) {
    const { level, msg } = JSON.parse(line) as { level: number; msg: string };
    assert.ok(level <= 30, `level ${level}: ${msg}`);
  }
});
