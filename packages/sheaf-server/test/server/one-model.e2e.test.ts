// One list of promises for a model, wherever its batches run: on this machine, or on a worker behind a gateway.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { readRecords } from "sheaf/internal/tuning";
import { createServer, type ModelDefinition } from "../../dist/index.js";
import type { RunningServer } from "../../dist/server/server.js";
import type { Settings } from "../../dist/settings/settings.js";
import { temporaryFolder } from "../folder.js";
import { nats, skip } from "../e2e/nats.js";
import { atEnd } from "../at-end.js";
import type { Reply } from "../asking.js";
import { gated, serving, type Serving } from "./serving.js";

type Run = (items: Float32Array[]) => Promise<unknown[]>;

let names = 0;

/** Doubles three numbers, and notes every item that it runs. */
function noting(): ModelDefinition & { readonly ran: number[] } {
  const ran: number[] = [];
  const run = (items: Float32Array[]): Float32Array[] => {
    ran.push(...items.map(([first]) => first!));
    return items.map((item) => item.map((number) => number * 2));
  };
  return { ...gated(`model ${++names}`), isCacheable: true, run, ran };
}

interface Place {
  /** Takes requests. */
  readonly server: Serving;
  /** Runs batches; the same one where there is no fleet. */
  readonly runner: RunningServer;
}

type Open = (t: TestContext, model: ModelDefinition, settings?: Partial<Settings>) => Promise<Place>;

async function worker(
  t: TestContext,
  model: ModelDefinition,
  settings: Partial<Settings> = {},
): Promise<RunningServer> {
  const own = { natsUrl: nats.url, role: "worker", port: 0, logLevel: "silent", ...settings } as const;
  const runner = (await createServer({ models: [model], settings: own })) as RunningServer;
  atEnd(t, () => runner.close({ graceMs: 0 }));
  await runner.ready();
  return runner;
}

const places: Readonly<Record<"one machine" | "a gateway", Open>> = {
  "one machine": async (t, model, settings) => {
    const server = await serving(t, [model], settings);
    await server.ready();
    return { server, runner: server };
  },
  "a gateway": async (t, model, settings) => {
    const runner = await worker(t, model, { ...settings, recordFile: undefined });
    const server = await serving(t, [model], { natsUrl: nats.url, role: "gateway", ...settings });
    await server.ready();
    return { server, runner };
  },
};

const item = (first: number): number[] => [first, 0, 0];

/** Resolves when the runner has heard everything that the gateway has told the queue: each makes a round trip, one after the other. */
async function heard({ server, runner }: Place): Promise<void> {
  await answered(() => server.models.all[0]!.fleet?.frontEnd?.figures());
  await answered(() => runner.models.all[0]!.fleet?.worker?.figures());
}

/** A pause of the machine may cost a request to NATS its answer. */
async function answered(ask: () => Promise<unknown> | undefined): Promise<void> {
  try {
    await ask();
  } catch (error) {
    if ((error as { code?: unknown }).code !== "UNAVAILABLE") throw error;
    await answered(ask);
  }
}

for (const [place, open] of Object.entries(places)) {
  const promise = (name: string, body: (t: TestContext) => Promise<void>): void =>
    void test(`${place}: ${name}`, { skip: place === "a gateway" && skip }, body);

  promise("a result that is kept is given again without a run, a list runs its missing items only", async (t) => {
    const model = noting();
    const { server } = await open(t, model, { cacheMaxBytes: 2 ** 20 });
    const first = await server.post("/infer", item(1));
    const again = await server.post("/infer", item(1));
    assert.deepEqual([first, again].map(({ headers }) => headers.get("x-sheaf-cache")), ["miss", "hit"]); // prettier-ignore
    assert.deepEqual(again.json.output, [2, 0, 0]);
    assert.deepEqual([again.json.batch_size, again.json.queue_ms], [0, 0]);
    const list = await server.post("/infer", { inputs: [1, 2, 3].map(item) });
    assert.equal(list.headers.get("x-sheaf-cache"), "partial");
    assert.deepEqual(list.json.outputs, [2, 4, 6].map(item));
    assert.deepEqual(model.ran, [1, 2, 3]);
    const { text } = await server.get("/metrics");
    assert.match(text, new RegExp(`sheaf_cache_hits_total\\{batcher="${model.name}"\\} 2`));
  });

  promise("its record has each call, and the settings of those who run batches", async (t) => {
    const model = noting();
    const recordFile = join(temporaryFolder(t), "record.jsonl");
    const settings = { maxBatchSize: 3, schedulerStrategy: "fifo", maxWaitMs: 7, workers: 1 } as const;
    const { server } = await open(t, model, { ...settings, recordFile, cacheMaxBytes: 2 ** 20 });
    const priority = { "x-sheaf-priority": "bulk" };
    await Promise.all([1, 2, 3, 4, 5].map((first) => server.post("/infer", item(first), priority)));
    assert.equal((await server.post("/infer", item(5))).headers.get("x-sheaf-cache"), "hit");
    await server.close();
    const lines = readFileSync(recordFile, "utf8").split("\n");
    const { calls, runs, settings: recorded, cached } = (await readRecords([lines])).get(model.name)!;
    assert.deepEqual([[...calls.lane], cached], [[2, 2, 2, 2, 2], 1]);
    assert.equal(runs.reduce((sum, { size }) => sum + size, 0), 5); // prettier-ignore
    const { policy, maxBatchSize, maxWaitMs, concurrency } = recorded!;
    assert.deepEqual([policy, maxBatchSize, maxWaitMs, concurrency], ["fixed-window", 3, 7, 1]);
  });

  promise("an error is not kept", async (t) => {
    const model = noting();
    let runs = 0;
    const failing = (items: Float32Array[]): (Float32Array | Error)[] =>
      items.map((one) => (++runs === 1 ? new RangeError("not yet") : one));
    const { server } = await open(t, { ...model, run: failing }, { cacheMaxBytes: 2 ** 20 });
    assert.equal((await server.post("/infer", item(1))).status, 500);
    assert.equal((await server.post("/infer", item(1))).status, 200);
    assert.equal((await server.post("/infer", item(1))).headers.get("x-sheaf-cache"), "hit");
  });

  promise("a waiting item whose deadline passes is a 504 and is never run", async (t) => {
    const gate = gated();
    const { ran, ...model } = noting();
    const run: Run = async (items) => {
      await (gate.run as Run)(items);
      return (model.run as Run)(items);
    };
    const place = await open(t, { ...model, run }, { maxBatchSize: 1 });
    const { server } = place;
    const running = server.post("/infer", item(1));
    await gate.started;
    // As many as a worker may have taken before their deadline, and more.
    const late = await Promise.all(
      [2, 3, 4].map((first) => server.post("/infer", item(first), { "x-request-timeout-ms": "200" })),
    );
    for (const { status, json } of late) assert.deepEqual([status, json.error.code], [504, "TIMEOUT"]);
    await heard(place);
    gate.release();
    assert.equal((await running).status, 200);
    assert.equal((await server.post("/infer", item(5))).status, 200);
    assert.deepEqual(ran, [1, 5]);
  });

  promise("a request whose result would come too late is refused at once, with the time to come back", async (t) => {
    const gate = gated();
    const run: Run = async (items) => {
      await sleep(30);
      return items[0]![0] === 0 ? items : (gate.run as Run)(items);
    };
    const patient = { requestTimeoutMs: 300_000, runTimeoutMs: 300_000 };
    const { server } = await open(t, { ...noting(), run }, { maxBatchSize: 1, ...patient });
    for (let i = 0; i < 20; i++) assert.equal((await server.post("/infer", item(0))).status, 200);
    const backlog = Array.from({ length: 100 }, () => server.post("/infer", item(1)));
    // A failure must not leave them waiting.
    t.after(() => gate.release());
    // A gateway knows the speed of its workers and the length of the queue from a moment ago: it may take the first ones.
    const refusalOf = async (body: unknown): Promise<Reply> => {
      for (;;) {
        const reply = await server.post("/infer", body, { "x-request-timeout-ms": "500" });
        if (reply.status === 429) return reply;
      }
    };
    const late = await refusalOf(item(2));
    assert.equal(late.json.error.code, "QUEUE_FULL");
    assert.match(late.json.error.message, /too long for a deadline of 500 ms: a result is expected after \d+ ms/);
    assert.ok(Number(late.headers.get("retry-after")) >= 1);
    assert.ok(Number(late.headers.get("retry-after-ms")) > 0, late.headers.get("retry-after-ms")!);
    assert.equal((await refusalOf({ inputs: [item(2), item(3)] })).json.error.code, "QUEUE_FULL");
    gate.release();
    for (const { status } of await Promise.all(backlog)) assert.equal(status, 200);
  });

  promise("the trace context of a request is among the tags of its batch", async (t) => {
    const { server, runner } = await open(t, noting());
    const tags: unknown[] = [];
    runner.models.all[0]!.subscribe((record) => tags.push(...(record.tags ?? [])));
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await server.post("/infer", item(1), { traceparent });
    await server.post("/infer", { inputs: [item(2), item(3)] }, { traceparent });
    await server.post("/infer", item(4));
    assert.deepEqual(tags, [traceparent, traceparent, traceparent]);
  });

  promise("a close cuts off accepted items after its grace, and says that it was not complete", async (t) => {
    const gate = gated();
    const { server } = await open(t, { ...noting(), run: gate.run });
    const running = server.post("/infer", item(1));
    await gate.started;
    assert.equal(await server.close({ graceMs: 1 }), false);
    const { status, json } = await running;
    assert.deepEqual([status, json.error.code], [503, "CLOSED"]);
    gate.release();
  });
}

test("a gateway forgets its results when another version takes over", { skip }, async (t) => {
  const { name } = noting();
  const version = (version: string): ModelDefinition => ({
    ...noting(),
    name,
    version,
    run: (items: Float32Array[]) => items.map(() => Float32Array.of(Number(version), 0, 0)),
  });
  const old = await worker(t, version("1"));
  const settings = { natsUrl: nats.url, role: "gateway", cacheMaxBytes: 2 ** 20 } as const;
  const server = await serving(t, [version("1")], settings);
  await server.ready();
  const ask = async (): Promise<unknown[]> => {
    const { headers, json } = await server.post("/infer", item(7));
    return [json.output[0], headers.get("x-sheaf-cache")];
  };
  assert.deepEqual([await ask(), await ask()], [[1, "miss"], [1, "hit"]]); // prettier-ignore
  const [next] = await Promise.all([worker(t, version("2")), old.close()]);
  const [model] = server.models.all;
  while (model!.fleet!.frontEnd!.workers()[0]?.version !== "2") await sleep(20);
  assert.deepEqual([await ask(), await ask()], [[2, "miss"], [2, "hit"]]); // prettier-ignore
  assert.equal(model!.cache!.counts.items, 1);
  assert.equal(next.models.status, "ok");
});

test("a gateway keeps results only of a model that is known to be deterministic", { skip }, async (t) => {
  const model = { ...noting(), isCacheable: undefined };
  const settings = { natsUrl: nats.url, role: "gateway", cacheMaxBytes: 2 ** 20 } as const;
  const kept = async (definition: ModelDefinition): Promise<boolean> => {
    const server = await serving(t, [definition], settings);
    return server.models.all[0]!.cache !== undefined;
  };
  assert.deepEqual(
    [
      await kept(model),
      await kept({ ...model, selfTest: "independent" }),
      await kept({ ...model, selfTest: "not-deterministic" }),
      await kept({ ...model, isCacheable: true }),
    ],
    [false, true, false, true],
  );
});
