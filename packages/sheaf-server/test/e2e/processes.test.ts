import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { readRecords } from "sheaf/internal/tuning";
import { ready, sheaf, type SheafProcess } from "./sheaf-process.js";

const folder = mkdtempSync(join(tmpdir(), "sheaf-processes-"));
after(() => rmSync(folder, { recursive: true }));

const fronts = 4;
const windows = process.platform === "win32" ? "signals and ps are not as elsewhere" : false;

/** A worker module that gives back its items; one that is "wait" holds its batch while `gate` is not there. */
function gated(name: string): { readonly path: string; open(): void } {
  const path = join(folder, `${name}.mjs`);
  const gate = join(folder, `${name}-gate`);
  writeFileSync(
    path,
    `import { existsSync } from "node:fs";
    export const sample = "a";
    export default {
      load: async () => undefined,
      run: async (items) => {
        while (items.includes("wait") && !existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5));
        return items;
      },
    };`,
  );
  return { path, open: () => writeFileSync(gate, "") };
}

interface Serving {
  readonly served: SheafProcess;
  readonly url: string;
  ask(path: string, body?: unknown, init?: Init): Promise<Answer>;
  /** One connection, and so a front, for each. */
  readonly agents: readonly Agent[];
  pidOf(what: string): number;
}

interface Init {
  readonly agent?: Agent | false;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly json: any;
}

async function serve(t: TestContext, words: readonly string[], env: Record<string, string> = {}): Promise<Serving> {
  const served = sheaf(t, ["serve", ...words, "--port", "0"], {
    HTTP_PROCESSES: String(fronts),
    // Each front warms up for seconds of a core.
    WARMUP_BATCHES: "0",
    ...env,
  });
  const url = await ready(served);
  const agents = Array.from({ length: fronts }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  t.after(() => agents.forEach((agent) => agent.destroy()));
  return {
    served,
    url,
    agents,
    ask: (path, body, init) => askAt(`${url}${path}`, body, init),
    pidOf: (what) => childrenOf(served.child.pid!).find(({ args }) => args.includes(`${what}-main`))!.pid,
  };
}

async function askAt(url: string, body?: unknown, { agent = false, headers = {}, signal }: Init = {}): Promise<Answer> {
  const sent = request(url, {
    agent,
    signal,
    method: body === undefined ? "GET" : "POST",
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
  });
  sent.end(body === undefined ? undefined : Buffer.isBuffer(body) ? body : JSON.stringify(body));
  const [reply] = (await once(sent, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of reply) pieces.push(piece as Buffer);
  const text = Buffer.concat(pieces).toString();
  const isJson = reply.headers["content-type"]?.includes("json") === true;
  return { status: reply.statusCode!, headers: reply.headers, text, json: isJson ? JSON.parse(text) : undefined };
}

const childrenOf = (pid: number): { readonly pid: number; readonly args: string }[] =>
  execFileSync("ps", ["-axo", "pid=,ppid=,args="], { encoding: "utf8" })
    .split("\n")
    .map((line) => /^ *(\d+) +(\d+) +(.*)$/.exec(line) ?? [])
    .filter(([, , parent]) => Number(parent) === pid)
    .map(([, own, , args]) => ({ pid: Number(own), args: args! }));

/** Asks until the answer is as wanted. */
async function until(ask: () => Promise<Answer>, isWanted: (answer: Answer) => boolean): Promise<Answer> {
  for (;;) {
    const answer = await ask().catch(() => undefined);
    if (answer !== undefined && isWanted(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const isRunning = /^sheaf_in_flight_batches\{[^}]*\} [1-9]/m;

const metricOf = (text: string, series: string): number =>
  Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${series} `))
      ?.split(" ")
      .at(-1) ?? 0,
  );

test("every front answers every route, and one /metrics counts for all of them", async (t) => {
  const { path } = gated("routes");
  const { ask, agents } = await serve(t, [path]);
  for (const agent of agents) {
    const one = await ask("/infer", { input: "cat" }, { agent, headers: { "x-request-id": "mine" } });
    assert.deepEqual([one.status, one.json.output, one.headers["x-request-id"]], [200, "cat", "mine"]);
    const several = await ask("/infer/routes", { inputs: ["a", "b", 7] }, { agent });
    assert.deepEqual(several.json.outputs.slice(0, 2), ["a", "b"]);
    assert.equal((await ask("/infer", "{", { agent })).json.output, "{");
    assert.equal((await ask("/infer", Buffer.from("{"), { agent })).json.error.code, "NOT_JSON");
    assert.equal((await ask("/infer/unknown", "a", { agent })).json.error.code, "MODEL_NOT_FOUND");
    assert.equal((await ask("/infer", undefined, { agent })).status, 405);
    assert.equal((await ask("/nowhere", "a", { agent })).json.error.code, "NOT_FOUND");
    for (const about of ["/v1/models", "/v2/models/routes", "/openapi.json", "/livez", "/readyz", "/"])
      assert.equal((await ask(about, undefined, { agent })).status, 200, about);
  }
  const { text } = await ask("/metrics");
  assert.equal(metricOf(text, 'sheaf_requests_total{route="/infer",status="200"}'), 2 * fronts);
  assert.equal(metricOf(text, 'sheaf_requests_total{route="/infer",status="400"}'), fronts);
  assert.equal(metricOf(text, 'sheaf_requests_total{route="/infer/:model",status="200"}'), fronts);
  assert.equal(metricOf(text, 'sheaf_requests_total{route="/v1/models",status="200"}'), fronts);
  const names = [...text.matchAll(/^sheaf_process_resident_memory_bytes\{process="([^"]+)"\}/gm)].map(
    ([, name]) => name,
  );
  assert.deepEqual(
    names.sort((a, b) => a!.localeCompare(b!)),
    ["front 1", "front 2", "front 3", "front 4", "hub"],
  );
});

test("a record has the calls of every front, as those of one server", { skip: windows }, async (t) => {
  const { path } = gated("recorded");
  const file = join(folder, "record.jsonl");
  const { ask, agents, served } = await serve(t, [path, "--max-batch-size", "4"], { RECORD_FILE: file });
  const asked = agents.flatMap((agent) => Array.from({ length: 5 }, () => ask("/infer", "a", { agent })));
  assert.ok((await Promise.all(asked)).every(({ status }) => status === 200));
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
  const records = await readRecords([readFileSync(file, "utf8").split("\n")]);
  const { calls, settings } = records.get("recorded")!;
  assert.deepEqual([records.size, calls.count, settings?.maxBatchSize], [1, 5 * fronts, 4]);
});

test("the page's events go through a front, with a row for each front", async (t) => {
  const { path } = gated("page");
  const { url } = await serve(t, [path]);
  const page = request(`${url}/dashboard/events`, { agent: false });
  page.end();
  const [reply] = (await once(page, "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of reply) if ((text += String(piece)).includes('"front 4"')) break;
  assert.match(text, /"fronts":\[\{"name":"front 1","coreShare":/);
});

test("room in the queue and a tenant's bounds are those of one server, however many fronts ask", async (t) => {
  const { path, open } = gated("bounds");
  const { ask, agents } = await serve(t, [path, "--queue-max-size", "4", "--max-batch-size", "1"]);
  const waiting: Promise<Answer>[] = [];
  const countOf = (text: string, gauge: string): number =>
    Number(new RegExp(`^sheaf_${gauge}\\{[^}]*\\} (\\d+)$`, "m").exec(text)![1]);
  // One runs, one may be prefetched, four wait.
  for (let queued = 0; queued < 4;) {
    waiting.push(ask("/infer", "wait", { agent: agents[waiting.length] ?? false }));
    const isIn = ({ text }: Answer): boolean =>
      (queued = countOf(text, "queue_items")) + countOf(text, "in_flight_batches") === waiting.length;
    await until(() => ask("/metrics"), isIn);
  }
  const others = Array.from({ length: 2 * fronts }, () => ask("/infer", "wait"));
  for (const { status, headers, json } of await Promise.all(others))
    assert.deepEqual([status, typeof headers["retry-after-ms"], json.error.code], [429, "string", "QUEUE_FULL"]);
  open();
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 200);

  const tenants = gated("tenants");
  const sha256 = createHash("sha256").update("k").digest("hex");
  const keys = join(folder, "keys.json");
  writeFileSync(keys, JSON.stringify({ keys: [{ name: "ann", sha256, itemsInFlight: 6, operator: true }] }));
  const kept = await serve(t, [tenants.path, "--api-keys-file", keys]);
  const headers = { authorization: "Bearer k" };
  const held = Array.from({ length: 6 }, () => kept.ask("/infer", "wait", { headers }));
  const inFlight = 'sheaf_tenant_in_flight_items{tenant="ann"}';
  await until(
    () => kept.ask("/metrics", undefined, { headers }),
    ({ text }) => metricOf(text, inFlight) === 6,
  );
  for (const agent of kept.agents)
    assert.equal((await kept.ask("/infer", "a", { agent, headers })).json.error.code, "TENANT_LIMIT");
  // A key that is removed is refused by each front.
  writeFileSync(keys, JSON.stringify({ keys: [] }));
  for (const agent of kept.agents)
    await until(
      () => kept.ask("/infer", "a", { agent, headers }),
      ({ status }) => status === 401,
    );
  tenants.open();
  assert.ok((await Promise.all(held)).every(({ status }) => status === 200));
});

test("a client that hangs up takes its item out of the queue", async (t) => {
  const { path, open } = gated("hang-up");
  const { ask } = await serve(t, [path, "--max-batch-size", "1"]);
  const running = [ask("/infer", "wait"), ask("/infer", "wait")];
  const abort = new AbortController();
  await until(
    () => ask("/metrics"),
    ({ text }) => isRunning.test(text),
  );
  const waiting = ask("/infer", "gone", { signal: abort.signal });
  waiting.catch(() => undefined);
  await until(
    () => ask("/metrics"),
    ({ text }) => /^sheaf_queue_items\{[^}]*\} [1-9]/m.test(text),
  );
  abort.abort();
  await assert.rejects(waiting, { name: "AbortError" });
  await until(
    () => ask("/metrics"),
    ({ text }) => /^sheaf_items_total\{[^}]*"aborted"[^}]*\} 1$/m.test(text),
  );
  open();
  assert.ok((await Promise.all(running)).every(({ status }) => status === 200));
});

test("a front that is killed breaks its own connections, and is started again", { skip: windows }, async (t) => {
  const { path, open } = gated("front-killed");
  const { ask, agents, served, pidOf } = await serve(t, [path]);
  for (const agent of agents) assert.equal((await ask("/infer", "a", { agent })).status, 200);
  const held = agents.map((agent) =>
    ask("/infer", "wait", { agent }).then(
      ({ status }) => status,
      () => "broken",
    ),
  );
  await until(
    () => ask("/metrics"),
    ({ text }) => isRunning.test(text),
  );
  process.kill(pidOf("front"), "SIGKILL");
  await until(
    async () => ({ text: served.output.stdout }) as Answer,
    ({ text }) => text.includes("has ended; it is started again"),
  );
  open();
  assert.deepEqual(
    (await Promise.all(held)).sort((a, b) => String(a).localeCompare(String(b))),
    [200, 200, 200, "broken"],
  );
  await until(
    () => ask("/metrics"),
    ({ text }) => /process="front 1"/.test(text),
  );
  for (let i = 0; i < 2 * fronts; i++) assert.equal((await ask("/infer", `item ${i}`)).json.output, `item ${i}`);
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
});

test(
  "while the hub is dead or stopped, fronts answer 503 with Retry-After, and come back by themselves",
  { skip: windows },
  async (t) => {
    const { path } = gated("hub");
    const { ask, agents, pidOf } = await serve(t, [path]);
    const isAway = ({ status, headers }: Answer): boolean => status === 503 && headers["retry-after"] !== undefined;
    for (const [signal, end] of [
      ["SIGSTOP", "SIGCONT"],
      ["SIGKILL", undefined],
    ] as const) {
      for (const agent of agents) assert.equal((await ask("/infer", "a", { agent })).status, 200);
      const hub = pidOf("hub");
      const held = ask("/infer", "wait", { agent: agents[0]! });
      await until(
        () => ask("/metrics"),
        ({ text }) => isRunning.test(text),
      );
      process.kill(hub, signal);
      const lost = await held;
      assert.ok(isAway(lost), lost.text);
      assert.equal(lost.json.error.code, "NOT_READY");
      for (const path of ["/readyz", "/livez", "/v1/models"])
        if (signal === "SIGSTOP") assert.ok(isAway(await ask(path, undefined, { agent: agents[1]! })), path);
      if (end !== undefined) process.kill(hub, end);
      for (const agent of agents)
        await until(
          () => ask("/infer", "a", { agent }),
          ({ status }) => status === 200,
        );
      await until(
        () => ask("/readyz"),
        ({ status }) => status === 200,
      );
    }
  },
);

test("a connection on its way to a front that is killed breaks", { skip: windows }, async (t) => {
  const { url, pidOf } = await serve(t, [gated("hand-over").path]);
  const front = pidOf("front");
  process.kill(front, "SIGSTOP");
  // One of them is handed to each front.
  const asked = Array.from({ length: fronts }, () =>
    askAt(`${url}/livez`).then(
      ({ status }) => status,
      (error: NodeJS.ErrnoException) => error.code,
    ),
  );
  await until(
    () => askAt(`${url}/livez`, undefined, { signal: AbortSignal.timeout(500) }),
    ({ status }) => status === 200,
  );
  process.kill(front, "SIGKILL");
  const answers = await Promise.all(asked);
  assert.deepEqual(
    answers.filter((answer) => answer !== 200),
    ["ECONNRESET"],
  );
});

test("no process outlives the one that was started", { skip: windows }, async (t) => {
  const { path } = gated("orphans");
  const { served, url } = await serve(t, [path, "--worker-isolation", "process"]);
  assert.equal(childrenOf(served.child.pid!).length, fronts + 1);
  served.child.kill("SIGKILL");
  // All of them hold its standard output, so it closes with the last.
  assert.equal(await served.ended, "SIGKILL");
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNREFUSED");
});

test("SIGTERM answers what was accepted, at every front, before the hub ends", { skip: windows }, async (t) => {
  const { path, open } = gated("drain");
  const { ask, agents, served } = await serve(t, [path]);
  const held = agents.map((agent) => ask("/infer", "wait", { agent }));
  await until(
    () => ask("/metrics"),
    ({ text }) => isRunning.test(text),
  );
  served.child.kill("SIGTERM");
  await until(
    () => ask("/infer/unknown", "late"),
    ({ json }) => json?.error?.code === "DRAINING",
  );
  open();
  assert.ok((await Promise.all(held)).every(({ status }) => status === 200));
  assert.equal(await served.ended, 0);
});

test("a model that cannot be loaded ends the server with its reason", async (t) => {
  const path = join(folder, "broken.mjs");
  writeFileSync(path, `export default { load: () => { throw new Error("no weights") }, run: (items) => items };`);
  const served = sheaf(t, ["serve", path, "--port", "0"], { HTTP_PROCESSES: "2" });
  assert.equal(await served.ended, 1);
  assert.match(served.output.stderr, /no weights/);
});

test("HTTP_PROCESSES ends a gateway of a fleet before it starts", async (t) => {
  const served = sheaf(t, ["serve", "mlp"], { HTTP_PROCESSES: "2", NATS_URL: "nats://127.0.0.1:1", ROLE: "gateway" });
  assert.equal(await served.ended, 2);
  assert.match(served.output.stderr, /HTTP_PROCESSES cannot be combined with NATS_URL: start more gateways/);
});

test("a list that is longer than the queue waits for room, and a model is replaced without a lost request", async (t) => {
  const models = mkdtempSync(join(folder, "models-"));
  const version = (text: string): void =>
    writeFileSync(
      join(models, "words.mjs"),
      `export const sample = "a"; export default { load: async () => undefined, run: (items) => items.map((item) => item + ${JSON.stringify(text)}) };`,
    );
  version("1");
  const { ask, agents } = await serve(t, [models, "use-lite", "--watch", "--queue-max-size", "8"]);
  const answers: Answer[] = [];
  let isNew = false;
  const callers = agents.map(async (agent) => {
    while (!isNew || answers.length < 50) {
      const answer = await ask("/infer/words", "a", { agent });
      answers.push(answer);
      isNew ||= answer.json.output === "a2";
    }
  });
  version("2");
  await Promise.all(callers);
  assert.deepEqual([...new Set(answers.map(({ status, json }) => `${status} ${json.output}`))].sort(), [
    "200 a1",
    "200 a2",
  ]);
  const texts = Array.from({ length: 30 }, (_, index) => `text ${index}`);
  const long = await ask("/v1/embeddings", { model: "use-lite", input: texts });
  assert.equal(long.status, 200, long.text);
  assert.equal(long.json.data.length, 30);
});
