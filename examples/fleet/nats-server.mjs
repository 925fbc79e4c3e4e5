// The server of NATS_URL, or one of our own that ends with the example: `nats-server` of the PATH, or the file of NATS_SERVER.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";

/** Undefined, with a word about it, where there is none. */
export async function startNats() {
  if (process.env.NATS_URL) return { url: process.env.NATS_URL, stop: async () => undefined };
  const port = await freePort();
  const url = `nats://127.0.0.1:${port}`;
  const store = mkdtempSync(join(tmpdir(), "fleet-example-"));
  const { NATS_SERVER: command = "nats-server" } = process.env;
  const server = spawn(command, ["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", store], {
    stdio: "ignore",
  });
  const failed = await Promise.race([once(server, "error"), once(server, "spawn").then(() => undefined)]);
  if (failed !== undefined) {
    console.error("nats-server is not installed (https://nats.io/download); or set NATS_URL to a running one.");
    return undefined;
  }
  for (let attempt = 0; attempt < 100; attempt++) {
    const connection = await connect({ servers: url }).catch(() => undefined);
    if (connection !== undefined) {
      await connection.close();
      break;
    }
    await sleep(50);
  }
  const stop = async () => {
    server.kill();
    await once(server, "exit");
    rmSync(store, { recursive: true });
  };
  return { url, stop };
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  return port;
}
