import { setTimeout as sleep } from "node:timers/promises";
import { disturb } from "./disturb.mjs";
import { Ledger } from "./ledger.mjs";
import { Program } from "./program.mjs";
import { ProxyRequests } from "./proxy-requests.mjs";
import { tenants } from "./tenants.mjs";
import { Upstream } from "./upstream.mjs";

const callersAtMost = 60;

/** `sheaf proxy`, killed and drained, between two tenants and an embeddings API that fails in every way. */
export async function chaosThroughProxy({ seconds, draw }) {
  const ledger = new Ledger();
  const upstream = await Upstream.start(draw, ledger);
  const proxy = new Program("sheaf proxy for two tenants", ["proxy", "--upstream", upstream.baseURL], {
    environment: {
      MAX_BATCH_SIZE: "16",
      QUEUE_MAX_SIZE: "100",
      REQUEST_TIMEOUT_MS: "4000",
      RUN_TIMEOUT_MS: "1500",
      SHUTDOWN_GRACE_MS: "6000",
      UPSTREAM_CONCURRENCY: "3",
    },
    heard: (text) => {
      const told = tenants.find(({ key }) => text.includes(key));
      if (told !== undefined) ledger.found("wrong", "the proxy's log", `it holds the key of ${told.name}`);
    },
  });
  await proxy.start();
  const requests = new ProxyRequests(proxy, upstream, ledger, draw);
  const faults = {};
  let isOver = false;
  const load = async () => {
    while (!isOver) {
      for (let i = draw.below(6); i > 0 && requests.open < callersAtMost; i--) void requests.send();
      if (draw.chance(0.002)) for (let i = 0; i < 300; i++) void requests.send();
      await sleep(draw.between(0, 80));
    }
  };
  const disturbances = {
    "kill -9 of the proxy": () => proxy.killAndRestart(),
    "SIGTERM of the proxy, and a start": () => proxy.drainAndRestart(),
    "all idle connections closed": () => requests.closeConnections(),
    "the upstream says 429 for a while": () => upstream.storm("429", draw.between(100, 2000)),
    "the upstream resets connections for a while": () => upstream.storm("reset", draw.between(100, 2000)),
  };
  const both = Promise.all([load(), disturb({ draw, disturbances, faults, isOver: () => isOver })]);
  const endsAtMs = performance.now() + 1000 * seconds;
  while (performance.now() < endsAtMs && proxy.crash === undefined) await Promise.race([both, sleep(100)]);
  isOver = true;
  await both;
  while (ledger.open > 0) await sleep(50);
  requests.closeConnections();
  await proxy.close();
  await upstream.close();
  return {
    name: proxy.name,
    ledger,
    faults: { ...faults, ...upstream.faults },
    crash: proxy.crash,
    exits: proxy.exits,
  };
}
