import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { NatsConnection } from "@nats-io/transport-node";
import { BatcherError } from "../../../dist/index.js";
import { Rig, double, needsNats, numbers, tokenOf, until } from "./rig.js";

const rig = new Rig();

const ackWaitMs = 2000;

/** As an item or a reply travels: length of the head, head, body. */
function wire(head: string, body: readonly number[] = []): Uint8Array {
  const text = Buffer.from(head);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  return Buffer.concat([length, text, Buffer.from(body)]);
}

const garbage: readonly (string | Uint8Array)[] = [
  "",
  "x",
  "no such message",
  Uint8Array.of(255, 255, 255, 255),
  "null",
  "{}",
  "[1]",
  "y".repeat(900_000),
  wire("null"),
  wire("{}"),
  wire("not json"),
];
const wrongItems: readonly Uint8Array[] = [
  wire(`{"f":5,"i":"1","d":1000}`),
  wire(`{"f":"a b","i":"1","d":1000}`),
  wire(`{"f":"x\\r\\nPUB foo 1\\r\\nx","i":"1","d":1000}`),
  wire(`{"f":"_INBOX.>","i":"1","d":1000}`),
  wire(`{"f":"","i":"","d":1000}`),
  wire(`{"f":"_INBOX.gone","i":{"a":1},"d":1000}`),
  wire(`{"f":"_INBOX.gone","i":"1"}`),
  wire(`{"f":"_INBOX.gone","i":"1","d":"soon"}`),
  wire(`{"f":"_INBOX.gone","i":"1","d":1e300}`),
];
/** These are items, of nobody who waits, whose bodies the codec cannot read. */
const wrongBodies: readonly Uint8Array[] = [
  wire(`{"f":"_INBOX.gone","i":"1","d":1000}`),
  wire(`{"f":"_INBOX.gone","i":"2","d":1000}`, [99]),
  wire(`{"f":"_INBOX.gone","i":"3","d":1000}`, [4, 255, 255, 255, 255, 1]),
];

function warnings(t: TestContext): () => number {
  const { mock } = t.mock.method(console, "warn", () => undefined);
  return () => mock.callCount();
}

for (const durability of ["file", "none"] as const) {
  test(
    `garbage on every subject of a worker: all others are served, one warning (${durability})`,
    needsNats,
    async (t) => {
      const warned = warnings(t);
      // A message that was not taken for what it is would come back after the ack wait, and hold up the lane until then.
      const { queue, front, worker } = await rig.pair(double, { durability });
      const stranger = await rig.connect();
      const subjects = ["cancel", "who", "careful", `${durability === "none" ? "n" : "q"}.any.interactive`];
      for (const subject of subjects)
        for (const payload of [...garbage, ...wrongItems, ...wrongBodies])
          stranger.publish(`sheaf.${tokenOf(queue)}.${subject}`, payload);
      // What the server has from the stranger it gives to the worker before what comes later.
      await stranger.flush();
      assert.deepEqual(await front.many([1, 2, 3]), [2, 4, 6]);
      assert.equal(warned(), 1);
      const { delivered, redelivered } = worker.counts;
      assert.equal(delivered - redelivered, wrongBodies.length + 3);
      if (durability === "none") return;
      // Of the readable ones nobody acknowledges the error: they come back, nobody answers for them, and they end.
      await until(
        async () => (await front.figures())[1]!.ackPending <= wrongBodies.length,
        "garbage is out of the queue",
      );
      assert.deepEqual(await rig.deadLetters(queue), []);
    },
  );

  test(`garbage on every subject of a front end: calls go on, one warning (${durability})`, needsNats, async (t) => {
    const warned = warnings(t);
    const { queue, front } = await rig.pair(double, { durability });
    const stranger = await rig.connect();
    const inbox = (await watched(stranger, queue, durability, () => front(1))).f;
    const words = [`{"id":"x","isServing":true,"slots":"many","maxBatchSize":1,"runMs":1,"runSize":null}`, ...garbage];
    for (const payload of words) stranger.publish(`sheaf.${tokenOf(queue)}.alive`, payload);
    for (const kind of ["r", "a", "q", "h", "z", ""])
      for (const payload of garbage) stranger.publish(`${inbox}.${kind}zz`, payload);
    const advisory = `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.SHEAF_${tokenOf(queue)}.any-interactive`;
    for (const payload of [...garbage, `{"stream_seq":"x"}`, `{"stream_seq":1e30,"deliveries":{}}`])
      stranger.publish(advisory, payload);
    await stranger.flush();
    assert.deepEqual(await front.many([1, 2, 3]), [2, 4, 6]);
    assert.equal(front.workers().length, 1, "nobody else has said that it serves");
    await until(() => Number.isFinite(front.drainMs(10)), "the worker has said how fast it is");
    // Both sides listen to advisories; each warns of its first.
    assert.ok(warned() <= 2, `${warned()} warnings`);
  });
}

test("a reply that cannot be read ends its call at once, and no other", needsNats, async (t) => {
  warnings(t);
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, number>(queue, { durability: "none" });
  // A worker of another version, say: it answers in words of its own.
  const replies = [
    "x",
    wire("null"),
    wire("{}"),
    wire(`{"n":"a","b":0,"w":"w","m":1,"s":"idle","c":1}`),
    wire(`{"n":1,"b":0,"w":"","m":0,"s":"idle","c":1,"e":null}`),
    wire(`{"n":1,"b":0,"w":"","m":0,"s":"idle","c":1,"a":"$JS.ACK.x y"}`),
    wire(`{"n":1,"b":0,"w":"","m":0,"s":"idle","c":1,"e":{"name":5,"message":{}}}`),
  ];
  const stranger = await rig.connect();
  let next = 0;
  stranger.subscribe(`sheaf.${tokenOf(queue)}.n.any.*`, {
    callback: (_error, { data }) => {
      const head = headOf(data);
      stranger.publish(`${head.f}.r${head.i}`, replies[next++]);
    },
  });
  await stranger.flush();
  for (const reply of replies)
    await assert.rejects(front(1), { code: "UNAVAILABLE", message: /cannot be read/ }, String(reply));
});

test("whatever a model throws reaches its caller, and its worker goes on", needsNats, async () => {
  const queue = rig.newQueue();
  const front = await rig.frontEnd<number, unknown>(queue);
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const thrown = [
    Object.assign(new RangeError("m".repeat(2_000_000)), { code: "LONG", note: "n".repeat(2_000_000) }),
    new BatcherError("RUN_TIMEOUT", "with numbers that JSON does not hold", { big: 1n }),
    new BatcherError("RUN_TIMEOUT", "with a circle", circular),
    Object.assign(new Error("with a name"), { name: 5 }),
    Object.defineProperty(new Error("with a getter"), "worse", {
      enumerable: true,
      get: () => {
        throw new Error("no");
      },
    }),
  ];
  await rig.worker<number, unknown>(queue, (items) => items.map((item) => thrown[item] ?? item));
  await front.ready();
  const outcomes = await front.settleDetailed([0, 1, 2, 3, 4, 5]);
  const reasons = outcomes.map((outcome) => (outcome.status === "rejected" ? outcome.reason : undefined));
  assert.deepEqual(
    [reasons[0].name, reasons[0].code, reasons[0].message.length < 10_000],
    ["RangeError", "LONG", true],
  );
  assert.deepEqual([reasons[1].code, reasons[2].code, reasons[3].name], ["RUN_TIMEOUT", "RUN_TIMEOUT", "5"]);
  assert.match(reasons[4].message, /cannot be read/);
  assert.equal(outcomes[5]!.status, "fulfilled");
});

test("an item as large as a message may be is a dead letter like any other", needsNats, async () => {
  const crash = new BatcherError("WORKER_CRASHED", "r".repeat(600), { crashes: 7, items: 1 });
  const { queue, front } = await rig.pair<Uint8Array, unknown>((items) => items.map(() => crash));
  const most = await front(new Uint8Array(2_000_000)).catch((error) => error.details.most as number);
  let bytes = (most as number) - 60;
  // The largest one that is taken.
  while ((await front(new Uint8Array(bytes)).catch((error) => error.code)) === "ITEM_TOO_LARGE") bytes--;
  const letters = await rig.deadLetters(queue);
  await assert.rejects(front(new Uint8Array(bytes)), { code: "DEAD_LETTERED" });
  assert.equal((await rig.deadLetters(queue)).length, letters.length + 1);
});

test("a connection that its owner has ended before the two sides crashes neither", needsNats, async () => {
  const { front, worker, connection } = await rig.pair(double, { ackWaitMs });
  assert.equal(await front(1), 2);
  const draining = connection.drain();
  await worker.drain();
  await draining;
});

test("many items of one signal cost one listener on it", needsNats, async () => {
  const warned: Error[] = [];
  const listener = (warning: Error): void => void warned.push(warning);
  process.on("warning", listener);
  const { front } = await rig.pair(double);
  const { signal } = new AbortController();
  assert.equal((await front.settleDetailed(numbers(50), { signal })).length, 50);
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", listener);
  assert.deepEqual(warned, []);
});

const headOf = (data: Uint8Array): { f: string; i: string } =>
  JSON.parse(Buffer.from(data).toString("utf8", 4, 4 + Buffer.from(data).readUInt32LE(0)));

/** The head of the item that `call` publishes. */
async function watched(
  stranger: NatsConnection,
  queue: string,
  durability: string,
  call: () => Promise<unknown>,
): Promise<{ f: string; i: string }> {
  let head: { f: string; i: string } | undefined;
  const subject = `sheaf.${tokenOf(queue)}.${durability === "none" ? "n" : "q"}.any.*`;
  const subscription = stranger.subscribe(subject, { callback: (_error, { data }) => void (head = headOf(data)) });
  await stranger.flush();
  await call();
  await until(() => head !== undefined, "the item is seen");
  subscription.unsubscribe();
  return head!;
}
