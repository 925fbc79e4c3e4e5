import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "../../../dist/testing/index.js";
import { WorkerRegistry, workerInfoOf } from "../../../dist/adapters/nats/queue/worker-registry.js";
import { Routing } from "../../../dist/adapters/nats/front-end/routing.js";

const info = {
  id: "w",
  slots: 1,
  maxBatchSize: 32,
  isServing: true,
  runMs: 10,
  runSize: 20,
  route: "any",
  generation: 0,
};

test("a worker that is silent for 5 s is gone, and back when it is heard again", () => {
  const clock = manualClock();
  const seen = new WorkerRegistry(clock);
  seen.add(info);
  for (let ms = 0; ms < 5000; ms += 100) clock.advance(100);
  assert.equal(seen.all().length, 1);
  clock.advance(100);
  assert.deepEqual(seen.all(), []);
  seen.add(info);
  assert.deepEqual(seen.all(), [info]);
  seen.stop();
});

test("a pause of the front end itself does not count as silence of its workers", () => {
  let nowMs = 0;
  const due: (() => void)[] = [];
  // Timers of a process that was stopped: they fire late, all at once.
  const clock = {
    now: () => nowMs,
    after: (_delayMs: number, callback: () => void) => (due.push(callback), () => undefined),
  };
  const seen = new WorkerRegistry(clock);
  seen.add(info);
  nowMs += 60_000;
  assert.equal(seen.all().length, 1, "before anything that waits in the socket was read");
  due.shift()!();
  assert.equal(seen.all().length, 1);
  for (let turn = 0; turn < 10; turn++) {
    nowMs += 500;
    due.shift()!();
  }
  assert.deepEqual(seen.all(), [], "it has listened since, and heard nothing");
});

test("how long items take follows from the heartbeats of workers; other messages are refused", () => {
  const routing = new Routing({ clock: manualClock(), serves: undefined, connection: {} } as never, () => undefined);
  assert.equal(routing.drainMs(10), undefined);
  routing.heard(info);
  assert.equal(routing.drainMs(40), 20);
  const said = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
  assert.deepEqual(workerInfoOf(said(info)), info);
  const wrong = [{ slots: "many" }, { isServing: 1 }, { serves: 7 }, { version: 7 }, { route: "a.b" }, { route: "*" }];
  for (const value of [null, 5, {}, ...wrong.map((part) => ({ ...info, ...part }))])
    assert.throws(() => workerInfoOf(said(value)), TypeError);
});

test("a worker's last word: it is gone at once", () => {
  const registry = new WorkerRegistry(manualClock());
  registry.add(info);
  registry.add({ ...info, slots: 0 });
  assert.deepEqual(registry.all(), []);
});
