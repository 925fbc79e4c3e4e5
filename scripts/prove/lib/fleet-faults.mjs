import assert from "node:assert/strict";
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../../../packages/sheaf/dist/internal/tuning.js";
import { load, post } from "../../../test/support/fleet-load.mjs";
import { editedModel, startFleet } from "../../../test/support/fleet-processes.mjs";
import { assertResult } from "../../../test/support/result.mjs";

const restartAfterMs = 1000;

/** What is done to a fleet under load. Each must leave every request answered, with its own result, once. */
const faults = {
  "no fault": () => undefined,
  "kill -9 a worker mid-batch": async ({ workers: [worker] }) => {
    await worker.end("SIGKILL");
    await sleep(restartAfterMs);
    worker.start();
    await worker.ready();
  },
  "kill -9 and restart nats-server": async ({ nats }) => {
    await nats.kill();
    await sleep(restartAfterMs);
    await nats.restart();
  },
  "kill -9 a gateway": async ({ gateways: [gateway] }) => {
    await gateway.end("SIGKILL");
    await sleep(restartAfterMs);
    gateway.start();
    await gateway.ready();
  },
  "stop a worker past its ack wait": async ({ workers: [worker], ackWaitMs }) => {
    worker.signal("SIGSTOP");
    await sleep(ackWaitMs + 1500);
    worker.signal("SIGCONT");
  },
  "cut every connection to NATS for 3 s": async ({ proxy }) => {
    proxy.cut();
    await sleep(3000);
    proxy.repair();
  },
  "stop nats-server for 3 s": async ({ nats }) => {
    nats.pause();
    await sleep(3000);
    nats.resume();
  },
  "drain a worker": async ({ workers: [worker] }) => {
    const status = await worker.end("SIGTERM");
    assert.equal(status, 0, `the drained worker ended with ${status}: ${worker.said}`);
    worker.start();
    await worker.ready();
  },
  "update the workers one by one to an edited model": async ({ workers }) => {
    const edited = editedModel();
    try {
      for (const worker of workers) await restart(worker, edited.file);
    } finally {
      edited.remove();
    }
  },
  "an edited model on one worker only": async ({ workers: [worker] }) => {
    // As it was before the update.
    await restart(worker, fileURLToPath(new URL("../../../test/support/fleet-worker.mjs", import.meta.url)));
  },
};

const stream = "SHEAF_fleet-worker";

/** Faults of a cluster of three NATS servers with a copy of the queue at each. */
const clusterFaults = {
  "no fault": () => undefined,
  "kill -9 the NATS server that leads the queue": async ({ nats, note }) => {
    const leader = await nats.leaderOf(stream);
    await away(nats, [leader], () => elected(nats, leader, note));
  },
  "kill -9 another NATS server": async ({ nats }) => {
    const leader = await nats.leaderOf(stream);
    await away(nats, [nats.servers.find((server) => server !== leader)], () => sleep(restartAfterMs));
  },
  "kill -9 two of three NATS servers": async ({ nats, note }) => {
    const leader = await nats.leaderOf(stream);
    const other = nats.servers.find((server) => server !== leader);
    await away(nats, [leader, other], () => sleep(restartAfterMs));
    await elected(nats, undefined, note);
  },
  "restart the NATS servers one by one": async ({ nats }) => {
    for (const server of nats.servers) {
      await server.restart("SIGTERM");
      await nats.ready();
    }
  },
  "kill -9 a worker mid-batch": faults["kill -9 a worker mid-batch"],
};

async function away(nats, servers, meanwhile) {
  await Promise.all(servers.map((server) => server.kill()));
  await meanwhile();
  await Promise.all(servers.map((server) => server.restart()));
  await nats.ready();
}

/** Until another server leads the queue. */
async function elected(nats, before, note) {
  const startedAtMs = performance.now();
  for (let leader; leader === undefined || leader === before; leader = await nats.leaderOf(stream)) await sleep(20);
  note({ electionMs: Math.round(performance.now() - startedAtMs) });
}

async function restart(worker, model) {
  const status = await worker.end("SIGTERM");
  assert.equal(status, 0, `the drained worker ended with ${status}: ${worker.said}`);
  worker.model = model;
  worker.start();
  await worker.ready();
}

/** These must not even make a client try again. */
const unfelt = new Set([
  "no fault",
  "update the workers one by one to an edited model",
  "an edited model on one worker only",
  "drain a worker",
]);

/**
 * Every fault in turn, under `rate` requests a second.
 * @param {(row: object) => void} report called after each with what was seen
 */
export async function faultsUnderLoad({
  rate,
  durationMs,
  ackWaitMs,
  seed,
  report,
  only = "",
  holdMs,
  isCluster = false,
}) {
  const random = seededRandom(seed);
  const env = { NATS_ACK_WAIT_MS: String(ackWaitMs), ...(holdMs !== undefined && { NATS_HOLD_MS: String(holdMs) }) };
  const fleet = await startFleet({ env, via: isCluster ? "cluster" : "proxy" });
  try {
    for (const [name, fault] of Object.entries(isCluster ? clusterFaults : faults)) {
      if (!name.includes(only)) continue;
      await fleet.ready();
      fleet.forgetRuns();
      const notes = {};
      const note = (noted) => Object.assign(notes, noted);
      const seen = await load({
        gateways: fleet.gateways,
        rate,
        durationMs,
        faultAtMs: durationMs * (0.15 + 0.2 * random()),
        fault: () => fault({ ...fleet, ackWaitMs, note }),
      });
      report({ name, ...seen, ...notes, runsPerItem: fleet.runsPerItem() });
      const words = `${name}: ${JSON.stringify(seen)}\n${[...fleet.gateways, ...fleet.workers].map(({ name, said }) => said && `${name}: ${said}`).join("\n")}`;
      assertResult([seen.wrong, seen.twice], [0, 0], words);
      assert.equal(seen.unanswered, 0, words);
      assert.equal(seen.mixed, 0, words);
      assert.equal(seen.answered, seen.sent, words);
      assert.equal(seen.withoutRetryAfter, 0, words);
      // A refusal (429) is not a fault: a machine too slow for the rate fills its queue.
      if (unfelt.has(name)) assert.equal(seen.retried - (seen.statuses[429] ?? 0), 0, words);
    }
  } finally {
    await fleet.stop();
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 4096 });
const infer = ({ origin }, body) => post(agent, `${origin}/infer`, body);
const accepted = (replies) => replies.filter(({ status }) => status === 200);

/** More than the queue holds, at once: each is answered or refused with the time to come back, none is lost. */
export async function fullQueue({ report }) {
  const fleet = await startFleet({ env: { QUEUE_MAX_SIZE: "100" } });
  try {
    // On a machine where the requests arrive more slowly than two workers answer them, the queue would never fill.
    for (const worker of fleet.workers) worker.signal("SIGSTOP");
    const goOn = () => fleet.workers.forEach((worker) => worker.signal("SIGCONT"));
    const calls = Array.from({ length: 600 }, async (_, id) => {
      const reply = await infer(fleet.gateways[id % 2], { input: { id } });
      if (reply.status === 429) goOn();
      return { id, ...reply };
    });
    const longest = setTimeout(goOn, 10_000);
    const replies = await Promise.all(calls);
    clearTimeout(longest);
    const refused = replies.filter(({ status }) => status === 429);
    // A nats-server that gets no processor for seconds is out of reach for a moment: the gateways say so, and when to come back.
    const outOfReach = replies.filter(({ status, headers }) => status === 503 && headers["retry-after"] !== undefined);
    const counts = { answered: accepted(replies).length, refused: refused.length, outOfReach: outOfReach.length };
    report({ name: "a full queue", ...counts });
    const told = new Set([...accepted(replies), ...refused, ...outOfReach]);
    assert.deepEqual(replies.filter((reply) => !told.has(reply)), []); // prettier-ignore
    assert.ok(refused.length > 0, "nothing was refused");
    assert.ok(accepted(replies).length >= 100, "what found room is answered");
    for (const { id, json } of accepted(replies)) assertResult(json.output.id, id);
    for (const { headers, json } of refused) {
      assert.match(headers["retry-after-ms"], /^\d+$/);
      assert.match(json.error.message, /is full: \d+ items wait, \d+ are at workers \(QUEUE_MAX_SIZE 100\)/);
    }
    const large = await infer(fleet.gateways[0], { input: { id: 1, pad: "x".repeat(1_100_000) } });
    report({ name: "a payload over NATS' limit", status: large.status });
    assert.equal(large.status, 413, JSON.stringify(large));
  } finally {
    await fleet.stop();
  }
}

/**
 * Longer than any pause of the machine: the queue gives nothing out again before it is known that its worker is gone, so that a
 * poisonous item ends three workers at most.
 */
const patient = { NATS_ACK_WAIT_MS: "120000", REQUEST_TIMEOUT_MS: "120000" };

function assertFewDeaths({ workers }) {
  const deaths = workers.reduce((sum, worker) => sum + worker.restarts, 0);
  assert.ok(deaths <= 3, `${deaths} workers ended before the item was given up`);
}

/** A poisonous item among 31 innocent ones: it is dead-lettered with an id, they are answered. */
export async function poison({ isolation, report }) {
  const fleet = await startFleet({
    env: patient,
    workerEnv: { WORKER_ISOLATION: isolation, MAX_WAIT_MS: "20", SCHEDULER_STRATEGY: "fifo" },
  });
  for (const worker of fleet.workers) worker.keepAlive(true);
  try {
    const startedAtMs = performance.now();
    const replies = await Promise.all(
      Array.from({ length: 32 }, (_, id) =>
        infer(fleet.gateways[id % 2], { input: id === 13 ? { id, poison: "process" } : { id } }).then((reply) => ({
          id,
          ...reply,
          tookMs: performance.now() - startedAtMs,
        })),
      ),
    );
    const guilty = replies[13];
    const innocents = accepted(replies);
    const restarts = fleet.workers.reduce((sum, worker) => sum + worker.restarts, 0);
    const name = `poison that kills the model's ${isolation === "process" ? "process" : "host"}`;
    report({
      name,
      answered: innocents.length,
      status: guilty.status,
      restarts,
      innocentsMs: Math.max(...innocents.map(({ tookMs }) => tookMs)),
      guiltyMs: guilty.tookMs,
    });
    const words = JSON.stringify(replies.find(({ status, id }) => status !== 200 && id !== 13) ?? guilty.json);
    assert.equal(innocents.length, 31, words);
    for (const { id, json } of innocents) assertResult(json.output.id, id);
    assert.equal(guilty.status, 502, words);
    assert.match(guilty.json.error.message, /dead letters as \d+/);
    if (isolation === "process") assert.equal(restarts, 0, "a worker's host never falls with its model");
    else assertFewDeaths(fleet);
  } finally {
    await fleet.stop();
  }
}

/**
 * A poisonous item while `rate` requests a second go to a fleet of two workers, which are started again whenever they end: no
 * request is refused, for one of them always serves, and the poison becomes a dead letter.
 */
export async function poisonUnderLoad({ rate, report }) {
  const fleet = await startFleet({
    env: patient,
    workerEnv: { WORKER_ISOLATION: "thread" },
    via: "direct",
  });
  for (const worker of fleet.workers) worker.keepAlive(true);
  try {
    let guilty;
    let isOver = false;
    const startedAtMs = performance.now();
    const replies = [];
    for (let id = 0; !isOver; id++) {
      replies.push(infer(fleet.gateways[id % 2], { input: { id } }));
      if (id === rate) {
        guilty = infer(fleet.gateways[0], { input: { id: 1e6, poison: "process" } });
        void guilty.then(() => (isOver = true));
      }
      await sleep(1000 / rate);
    }
    const statuses = {};
    for (const { status } of await Promise.all(replies)) statuses[status] = (statuses[status] ?? 0) + 1;
    const { status, json } = await guilty;
    const restarts = fleet.workers.reduce((sum, worker) => sum + worker.restarts, 0);
    report({ name: "poison under load", statuses, status, restarts, tookMs: performance.now() - startedAtMs });
    assert.equal(status, 502, JSON.stringify(json));
    assert.match(json.error.message, /dead letters as \d+/);
    assert.deepEqual(statuses, { 200: replies.length }, "one worker serves the others all the time");
    assertFewDeaths(fleet);
  } finally {
    await fleet.stop();
  }
}
