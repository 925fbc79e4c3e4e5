import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import { manualClock } from "../../../dist/testing/index.js";
import { Redeliveries } from "../../../dist/adapters/nats/worker/redeliveries.js";
import { Timers } from "../../../dist/adapters/nats/worker/timers.js";

test("a worker that is left alone tries the others' items after an ack wait, however long their callers wait", async () => {
  const clock = manualClock();
  const ran: string[] = [];
  const isAwaitedInAFleetOfTwo = new TextEncoder().encode("1 2 0 0");
  const connection = { request: () => Promise.resolve({ data: isAwaitedInAFleetOfTwo }) };
  const redeliveries = new Redeliveries({
    settings: { clock, connection, ackWaitMs: 5000 },
    workerId: "w",
    isIsolated: false,
    route: "any",
    peers: { listen: () => undefined, listenedMs: 1000, heardWithin: () => [] },
    timers: new Timers(clock),
    suspected: () => undefined,
    runAlone: ({ key }: { key: string }) => Promise.resolve(void ran.push(key)),
    settled: () => Promise.resolve(),
    isIdle: () => true,
    changed: () => undefined,
    idle: () => undefined,
  } as never);
  redeliveries.add({
    key: "a",
    head: { f: "_INBOX.f", i: "1", d: 60_000 },
    deadlineAtMs: 60_000,
    deliveries: 2,
  } as never);
  await turn();
  for (let passedMs = 0; passedMs < 4950; passedMs += 150) {
    clock.advance(150);
    await turn();
  }
  assert.deepEqual(ran, [], "the other worker may come back");
  clock.advance(150);
  await turn();
  assert.deepEqual(ran, ["a"]);
});
