import { Ledger } from "./ledger.mjs";
import { Requests } from "./requests.mjs";
import { Served } from "./served.mjs";
import { trySignal } from "./try-signal.mjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Load and faults on one server for `seconds`; gives its ledger, and what was done to it. */
export async function chaosOnServer(kind, { seconds, draw, callersAtMost = 40 }) {
  const server = new Served(kind);
  const ledger = new Ledger();
  const faults = {};
  const count = (what) => (faults[what] = (faults[what] ?? 0) + 1);
  await server.start();
  const requests = new Requests(server, ledger, draw);
  const endsAtMs = performance.now() + 1000 * seconds;
  let isOver = false;
  const load = async () => {
    let ratePerS = 60;
    while (!isOver) {
      if (draw.chance(0.02)) ratePerS = draw.of([10, 40, 100, 200]);
      if (requests.open < callersAtMost) void requests.send();
      if (draw.chance(0.002)) {
        count("a burst of 200 requests");
        for (let i = 0; i < 200; i++) void requests.send();
      }
      await sleep(draw.between(0, 2000 / ratePerS));
    }
  };
  const disturb = async () => {
    while (!isOver) {
      await sleep(draw.between(500, 4000));
      if (isOver) return;
      const what = draw.between(0, 1);
      const pids = server.workerPids();
      if (what < 0.35 && pids.length > 0) {
        count("kill -9 of a worker process");
        requests.disturbed();
        trySignal(draw.of(pids), "SIGKILL");
      } else if (what < 0.6 && pids.length > 0) {
        count("a worker process stopped for a while");
        const pid = draw.of(pids);
        requests.disturbed();
        trySignal(pid, "SIGSTOP");
        await sleep(draw.between(100, 2500));
        trySignal(pid, "SIGCONT");
        requests.disturbed();
      } else if (what < 0.75) {
        count("all idle connections closed");
        requests.closeConnections();
      } else if (what < 0.88) {
        count("kill -9 of the server");
        await server.killAndRestart();
      } else {
        count("SIGTERM of the server, and a start");
        await server.drainAndRestart();
      }
      // As an orchestrator does with one whose workers crashed too often.
      if ((await server.state()) === "failed") {
        count("restarted because /readyz said failed");
        requests.disturbed();
        await server.drainAndRestart();
      }
    }
  };
  const both = Promise.all([load(), disturb()]);
  while (performance.now() < endsAtMs && server.crash === undefined) await Promise.race([both, sleep(100)]);
  isOver = true;
  await both;
  while (ledger.open > 0) await sleep(50);
  requests.closeConnections();
  await server.close();
  return { name: server.name, ledger, faults, crash: server.crash, exits: server.exits };
}
