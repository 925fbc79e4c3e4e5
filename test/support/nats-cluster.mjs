// Three real nats-servers as a cluster with JetStream, on free ports of the loopback, each with a store of its own.
import { setTimeout as sleep } from "node:timers/promises";
import { startNats } from "./nats-server.mjs";
import { freePort } from "./serving.mjs";

const size = 3;
/** The servers of a cluster elect a leader for JetStream first, which takes seconds, and longer on a busy machine. */
const readyWithinMs = 120_000;
/** After kills a server may say for minutes that a copy has not caught up, though the queue is served. */
const catchUpMs = 15_000;

/** Starts a cluster and waits until JetStream has a leader. */
export async function startNatsCluster() {
  const ports = await distinctPorts(size);
  const routes = ports.map((port) => `nats://127.0.0.1:${port}`);
  const starts = await Promise.allSettled(
    routes.map((route, i) =>
      startNats(["-n", nameOf(i), "--cluster_name", "sheaf", "--cluster", route, "--routes", routes.join(",")]),
    ),
  );
  const servers = starts.flatMap(({ value }, i) => (value === undefined ? [] : [named(value, nameOf(i))]));
  const stop = () => Promise.all(servers.map((server) => server.stop()));
  const ready = () => Promise.all(servers.map(isHealthy));
  try {
    const failure = starts.find(({ reason }) => reason !== undefined);
    if (failure !== undefined) throw failure.reason;
    await ready();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    servers,
    /** All addresses, as NATS_URL takes them. */
    url: servers.map(({ url }) => url).join(","),
    /** Until every server runs and knows the leader of JetStream; a server gets 15 s to catch up with the others. */
    ready,
    /** The server that leads a stream; undefined while none does. */
    leaderOf: async (stream) => servers[numberOf(await leaderOf(servers, stream))],
    stop,
  };
}

const nameOf = (i) => `n${i + 1}`;
const numberOf = (name) => (name === undefined ? -1 : Number(name.slice(1)) - 1);

function named(server, name) {
  return Object.defineProperty(server, "name", { value: name });
}

async function distinctPorts(count) {
  const ports = new Set();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}

async function isHealthy(server) {
  const startedAtMs = Date.now();
  const untilMs = startedAtMs + readyWithinMs;
  let said;
  while (Date.now() < untilMs) {
    const { monitorUrl } = server;
    said = await jsonOf(`${monitorUrl}/healthz`);
    const hasCaughtUp = said?.status === "ok" || Date.now() - startedAtMs > catchUpMs;
    if (hasCaughtUp && (await jsonOf(`${monitorUrl}/jsz`))?.meta_cluster?.leader) return;
    await sleep(50);
  }
  throw new Error(`The NATS server ${server.name} was not ready within ${readyWithinMs} ms: ${JSON.stringify(said)}`);
}

/** As the servers that run see it. */
async function leaderOf(servers, stream) {
  const views = await Promise.all(servers.map(({ monitorUrl }) => jsonOf(`${monitorUrl}/jsz?streams=1`)));
  for (const view of views)
    for (const { stream_detail: streams = [] } of view?.account_details ?? [])
      for (const { name, cluster } of streams) if (name === stream && cluster?.leader) return cluster.leader;
  return undefined;
}

async function jsonOf(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
    return await response.json();
  } catch {
    return undefined;
  }
}
