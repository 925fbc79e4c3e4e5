import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { natsFrontEnd, natsWorker, type NatsFrontEnd, type NatsWorker } from "../../../dist/adapters/nats/index.js";
import { createBatcher } from "../../../dist/index.js";
import { startNatsCluster, type RunningCluster } from "../../../../../test/support/nats-cluster.mjs";
import { assertResult } from "../../../../../test/support/result.mjs";
import { needsNats, skip, until } from "./rig.js";

const electing = /JetStream elects a new leader, for which most of its servers must be up/;
const double = async (items: number[]): Promise<number[]> => {
  await sleep(2);
  return items.map((item) => item * 2);
};

let cluster: RunningCluster;
before(async () => {
  if (skip === false) cluster = await startNatsCluster();
});
after(() => cluster?.stop());

interface Fleet {
  /** One for each server of the cluster, connected to it. */
  readonly fronts: readonly NatsFrontEnd<number, number>[];
  readonly warnings: string[];
  end(): Promise<void>;
}

/** Front ends and two workers of a queue with a copy at each server. */
async function startFleet(queue: string, holdMs: number): Promise<Fleet> {
  const open: NatsConnection[] = [];
  const warnings: string[] = [];
  const at = async (url: string): Promise<NatsConnection> => {
    const connection = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    open.push(connection);
    return connection;
  };
  // Room for the calls of an election that takes a minute.
  const maxQueueSize = 10_000;
  const shared = {
    headers,
    queue,
    maxQueueSize,
    replicas: 3,
    onWarning: (message: string) => void warnings.push(message),
  };
  const workers: NatsWorker[] = [];
  for (const { url } of cluster.servers.slice(0, 2)) {
    const batcher = createBatcher(double, { maxBatchSize: 8, concurrency: 1 });
    workers.push(natsWorker(batcher, { ...shared, connection: await at(url) }));
  }
  const fronts: NatsFrontEnd<number, number>[] = [];
  for (const { url } of cluster.servers)
    fronts.push(
      natsFrontEnd<number, number>({
        ...shared,
        connection: await at(url),
        holdMs,
        timeoutMs: 60_000,
        maxAgeMs: 60_000,
      }),
    );
  await Promise.all([...workers, ...fronts].map((side) => side.ready()));
  const end = async (): Promise<void> => {
    for (const front of fronts) await front.close({ graceMs: 0 });
    for (const worker of workers) await worker.drain({ graceMs: 0 });
    for (const connection of open) await connection.close();
  };
  return { fronts, warnings, end };
}

/**
 * Calls at every front end in turn, until the server that led the queue was killed, or hangs, and another one has answered calls.
 * The front end at a server that hangs waits until it goes on.
 */
async function loseLeader(
  queue: string,
  { fronts }: Fleet,
  how: "is killed" | "hangs",
): Promise<PromiseSettledResult<number>[]> {
  const stream = `SHEAF_${queue}`;
  const calls: Promise<number>[] = [];
  let isLoaded = true;
  const loading = (async () => {
    for (let item = 0; isLoaded; item++) {
      const call = fronts[item % fronts.length]!(item);
      call.catch(() => undefined);
      calls.push(call);
      await sleep(10);
    }
  })();
  let connected = fronts;
  const answered = (): number => Math.min(...connected.map((front) => front.stats().items.ok));
  await until(() => answered() > 10, "every front end has answers");
  const leader = (await cluster.leaderOf(stream))!;
  if (how === "is killed") await leader.kill();
  else {
    leader.pause();
    connected = fronts.filter((_, index) => cluster.servers[index] !== leader);
  }
  await until(async () => ![undefined, leader].includes(await cluster.leaderOf(stream)), "another server leads it");
  const before = answered();
  await until(() => answered() > before + 10, "every front end has answers again");
  isLoaded = false;
  await loading;
  if (how === "hangs") leader.resume();
  const outcomes = await Promise.allSettled(calls);
  if (how === "is killed") await leader.restart();
  await cluster.ready();
  return outcomes;
}

/** Nothing that was answered holds a place. */
async function isEmpty(front: NatsFrontEnd<number, number>): Promise<boolean> {
  const lanes = await front.figures().catch(() => undefined);
  return lanes !== undefined && lanes.every(({ pending, ackPending }) => pending + ackPending === 0);
}

test(
  "the server that leads the queue is killed: every front end holds its calls through the election",
  needsNats,
  async () => {
    const fleet = await startFleet("held", 60_000);
    try {
      const outcomes = await loseLeader("held", fleet, "is killed");
      const refusals = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
      assert.deepEqual(refusals, []);
      for (const [item, outcome] of outcomes.entries()) assertResult((outcome as { value?: number }).value, 2 * item);
      assert.ok(
        fleet.warnings.some((warning) => electing.test(warning)),
        fleet.warnings.join("\n"),
      );
      const isOver = (warning: string): boolean => /takes items again, after \d+ ms/.test(warning);
      await until(() => fleet.warnings.some(isOver), "a front end sees that the election is over");
      await until(() => isEmpty(fleet.fronts[0]!), "every place is free again");
    } finally {
      await fleet.end();
    }
  },
);

test("the server that leads the queue hangs: calls wait for another one to lead it", needsNats, async () => {
  const fleet = await startFleet("hung", 60_000);
  try {
    const outcomes = await loseLeader("hung", fleet, "hangs");
    const refusals = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
    assert.deepEqual(refusals, []);
    assert.ok(!fleet.warnings.some((warning) => /until it is restarted with room/.test(warning)), "no disk is blamed");
  } finally {
    await fleet.end();
  }
});

test("calls that may not be held get an error that names the election", needsNats, async () => {
  const fleet = await startFleet("told", 0);
  try {
    const outcomes = await loseLeader("told", fleet, "is killed");
    const reasons = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as Error] : []));
    assert.ok(reasons.length > 0);
    const known = (message: string): boolean =>
      electing.test(message) || /connection to NATS (is|went) down/.test(message);
    assert.deepEqual(reasons.filter(({ message }) => !known(message)), []); // prettier-ignore
    assert.ok(reasons.some(({ message }) => electing.test(message)));
    for (const reason of reasons) assert.equal((reason as { code?: string }).code, "UNAVAILABLE");
  } finally {
    await fleet.end();
  }
});

test(
  "two of three servers are down: a front end at the third says so without a call, and that it is over",
  needsNats,
  async () => {
    const fleet = await startFleet("alone", 0);
    const [first, second] = cluster.servers;
    const front = fleet.fronts[2]!;
    try {
      assert.equal(await front(1), 2);
      await Promise.all([first!.kill(), second!.kill()]);
      const reason = /elects a new leader|no leader|does not answer|cannot count/;
      await until(() => reason.test(front.unavailableReason ?? ""), "it says so");
      await Promise.all([first!.restart(), second!.restart()]);
      await cluster.ready();
      await until(() => front.unavailableReason === undefined, "it is over");
      await until(async () => (await front(2).catch(() => 0)) === 4, "it serves again");
    } finally {
      await fleet.end();
    }
  },
);
