import { setTimeout as sleep } from "node:timers/promises";
import { startNatsCluster } from "../../../../test/support/nats-cluster.mjs";
import { startNats } from "../../../../test/support/nats-server.mjs";
import { disturb } from "./disturb.mjs";
import { FleetRequests } from "./fleet-requests.mjs";
import { Ledger } from "./ledger.mjs";
import { Served } from "./served.mjs";

const callersAtMost = 60;
/** Below the 8 s that a request may take: an item is given to another worker, and once more. */
const ackWaitMs = 1000;

/** Two gateways, three workers and a nats-server, each a process that is killed, stopped and drained. */
export async function chaosOnFleet({ seconds, draw }) {
  const nats = await startNats();
  return chaosOf({
    name: "fleet over HTTP",
    seconds,
    draw,
    nats,
    disturbances: {
      "kill -9 of NATS, and a start": () => nats.restart(),
      "SIGTERM of NATS, and a start": () => nats.restart("SIGTERM"),
      "NATS stopped for a while": () => stopped([nats], draw.between(100, 1500)),
    },
  });
}

/** The same over a cluster of three nats-servers with a copy of the queue at each, which are killed and stopped one or two at a time. */
export async function chaosOnCluster({ seconds, draw }) {
  const nats = await startNatsCluster();
  const leader = async () => (await nats.leaderOf("SHEAF_chaos")) ?? draw.of(nats.servers);
  const follower = async () => {
    const leading = await leader();
    return draw.of(nats.servers.filter((server) => server !== leading));
  };
  /** The next fault waits until all three are there again: what loses its majority for good cannot be used. */
  const away = async (servers) => {
    await Promise.all(servers.map((server) => server.kill()));
    await sleep(draw.between(0, 3000));
    await Promise.all(servers.map((server) => server.restart()));
    await nats.ready();
  };
  return chaosOf({
    name: "fleet on a NATS cluster",
    seconds,
    draw,
    nats,
    environment: { NATS_REPLICAS: "3", NATS_HOLD_MS: "6000" },
    disturbances: {
      "kill -9 of the NATS server that leads the queue": async () => away([await leader()]),
      "kill -9 of another NATS server": async () => away([await follower()]),
      "kill -9 of two NATS servers of three": async () => away([await leader(), await follower()]),
      "restart of the NATS servers one by one": async () => {
        for (const server of nats.servers) {
          await server.restart("SIGTERM");
          await nats.ready();
        }
      },
      "the NATS server that leads the queue stopped for a while": async () =>
        stopped([await leader()], draw.between(100, 3000)),
    },
  });
}

async function stopped(servers, ms) {
  for (const server of servers) server.pause();
  await sleep(ms);
  for (const server of servers) server.resume();
}

async function chaosOf({ name, seconds, draw, nats, environment: own = {}, disturbances: ofNats }) {
  const members = (role, count) =>
    Array.from({ length: count }, (_, i) => {
      const environment = {
        ROLE: role,
        NATS_URL: nats.url,
        NATS_ACK_WAIT_MS: String(ackWaitMs),
        WORKERS: "1",
        REQUEST_TIMEOUT_MS: "8000",
        SHUTDOWN_GRACE_MS: "10000",
        ...own,
      };
      return new Served("thread", environment, { name: `${role} ${i + 1}`, isRevived: role === "worker" });
    });
  const gateways = members("gateway", 2);
  const workers = members("worker", 3);
  const all = [...gateways, ...workers];
  await Promise.all(all.map((member) => member.start()));

  const ledger = new Ledger();
  const faults = {};
  const requests = new FleetRequests(gateways, ledger, draw);
  let isOver = false;
  const load = async () => {
    while (!isOver) {
      for (let i = draw.below(4); i > 0 && requests.open < callersAtMost; i--) void requests.send();
      if (draw.chance(0.002)) for (let i = 0; i < 300; i++) void requests.send();
      await sleep(draw.between(0, 60));
    }
  };
  const pause = async (member, atMostMs) => {
    requests.disturbed();
    await member.pause(draw.between(100, atMostMs));
    requests.disturbed();
  };
  const disturbances = {
    "kill -9 of a worker": () => draw.of(workers).killAndRestart(),
    "SIGTERM of a worker, and a start": () => draw.of(workers).drainAndRestart(),
    "a worker stopped for a while": () => pause(draw.of(workers), 2500),
    "kill -9 of a gateway": () => draw.of(gateways).killAndRestart(),
    "SIGTERM of a gateway, and a start": () => draw.of(gateways).drainAndRestart(),
    "a gateway stopped for a while": () => pause(draw.of(gateways), 2500),
    ...ofNats,
    "an item that ends its workers": () => requests.send("kill"),
    "all idle connections closed": () => requests.closeConnections(),
  };
  const both = Promise.all([load(), disturb({ draw, disturbances, faults, isOver: () => isOver })]);
  const crashed = () => all.find(({ crash }) => crash !== undefined)?.crash;
  const endsAtMs = performance.now() + 1000 * seconds;
  while (performance.now() < endsAtMs && crashed() === undefined) await Promise.race([both, sleep(100)]);
  isOver = true;
  await both;
  while (requests.open > 0) await sleep(50);
  requests.closeConnections();
  const crash = crashed();
  await Promise.all(all.map((member) => member.close()));
  await nats.stop();
  return { name, ledger, faults, crash, exits: sumOf(all.map(({ exits }) => exits)) };
}

function sumOf(counts) {
  const sum = {};
  for (const [what, times] of counts.flatMap((each) => Object.entries(each))) sum[what] = (sum[what] ?? 0) + times;
  return sum;
}
