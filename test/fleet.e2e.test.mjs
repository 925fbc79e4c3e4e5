// A slice of scripts/prove/fleet.mjs: real processes, a real nats-server, every fault once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { faultsUnderLoad, fullQueue, poison, poisonUnderLoad } from "../scripts/prove/lib/fleet-faults.mjs";
import { whyNoNats } from "./support/nats-server.mjs";

const skip = whyNoNats() ?? false;
const ackWaitMs = 1000;
const seed = 11;

test(`under every fault each request of a fleet gets its own answer, once (seed ${seed})`, { skip }, async (t) => {
  const rows = [];
  const report = (row) => {
    rows.push(row);
    t.diagnostic(JSON.stringify(row));
  };
  // Where a busy nats-server is out of reach for a moment, requests wait for it.
  await faultsUnderLoad({ rate: 150, durationMs: 2500, ackWaitMs, holdMs: 20_000, seed, report });
  assert.equal(rows.length, 10);
});

test(
  "a full queue refuses with the time to come back, and loses nothing; a payload over NATS' limit is a 413",
  { skip },
  async (t) => {
    await fullQueue({ report: (row) => t.diagnostic(JSON.stringify(row)) });
  },
);

for (const isolation of ["process", "thread"])
  test(
    `an item that kills the ${isolation === "process" ? "model" : "worker"} is a dead letter; its 31 batch-mates are answered`,
    { skip },
    async (t) => {
      await poison({ isolation, report: (row) => t.diagnostic(JSON.stringify(row)) });
    },
  );

test("two workers and an item that kills both: one of them always serves the others", { skip }, async (t) => {
  await poisonUnderLoad({ rate: 25, report: (row) => t.diagnostic(JSON.stringify(row)) });
});
