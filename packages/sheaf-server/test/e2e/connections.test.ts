import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ready, sheaf } from "./sheaf-process.js";

const worker = fileURLToPath(new URL("../load/fixtures/per-item-worker.js", import.meta.url));
/** More than Node lets wait by default. */
const many = 1000;
const kernelAllows = process.platform === "linux" ? Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8")) : 128;
const skip = kernelAllows < many && `net.core.somaxconn is ${kernelAllows} here; this test needs ${many}`;

test("connections that come while the process stands still wait for it, on every port", { skip }, async (t) => {
  const server = sheaf(t, ["serve", worker, "--port", "0", "--grpc-port", "0"]);
  const gateway = sheaf(t, ["proxy", "--upstream", "http://127.0.0.1:9", "--port", "0"]);
  const url = await ready(server);
  const grpcPort = /gRPC[^"]*?:(\d+)/.exec(server.output.stdout)?.[1];
  assert.ok(grpcPort !== undefined, server.output.stdout);
  const ports = [new URL(url).port, grpcPort, new URL(await ready(gateway)).port].map(Number);
  for (const { child } of [server, gateway]) child.kill("SIGSTOP");
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (const port of ports) {
    // The kernel completes a connection as long as there is room for it: with less room this would wait forever.
    const opened = Array.from({ length: many }, () => connect(port, "127.0.0.1"));
    sockets.push(...opened);
    await Promise.all(opened.map((socket) => once(socket, "connect", { signal: AbortSignal.timeout(60_000) })));
    for (const socket of opened) socket.destroy();
  }
});
