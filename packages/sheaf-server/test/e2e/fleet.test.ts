import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { nats, skip, startNats } from "./nats.js";
import { get, post, until } from "../asking.js";
import { pythonModel, skipWithoutPython } from "./python.js";
import { temporaryFolder } from "../folder.js";
import { listening, ready, sheaf, type SheafProcess } from "./sheaf-process.js";

interface Member {
  readonly url: string;
  readonly process: SheafProcess;
}

const start = (t: TestContext, role: string, env: Record<string, string> = {}): SheafProcess =>
  sheaf(t, ["serve", "mlp", "--role", role, "--port", "0"], { NATS_URL: nats.url, WARMUP_BATCHES: "2", ...env });

async function fleet(t: TestContext, env: Record<string, string> = {}): Promise<{ gateway: Member; worker: Member }> {
  const [gateway, worker] = [start(t, "gateway", env), start(t, "worker", env)];
  const [gatewayUrl, workerUrl] = await Promise.all([ready(gateway), ready(worker)]);
  return { gateway: { url: gatewayUrl, process: gateway }, worker: { url: workerUrl, process: worker } };
}

const reasonOf = async (url: string): Promise<string> => String((await get(`${url}/readyz`)).json.models[0].reason);

const item = (value: number): number[] => new Array<number>(768).fill(value);

/** Items that a server has accepted so far: settled, or waiting. */
async function itemsTaken(url: string): Promise<number> {
  const { text } = await get(`${url}/metrics`);
  const figures = text.matchAll(/^sheaf_(?:items_total|queue_items)\{.*\} (\d+)$/gm);
  return Array.from(figures, ([, figure]) => Number(figure)).reduce((sum, figure) => sum + figure, 0);
}

test("a gateway answers as a single machine does: routes, validation, batches, lists", { skip }, async (t) => {
  const { gateway } = await fleet(t);
  const single = sheaf(t, ["serve", "mlp", "--port", "0"], { WARMUP_BATCHES: "2" });
  const url = await ready(single);
  const sent = item(0.25);
  const [here, there] = await Promise.all([post(`${url}/infer`, sent), post(`${gateway.url}/infer`, sent)]);
  assert.equal(there.status, 200);
  assert.deepEqual(Object.keys(there.json), Object.keys(here.json));
  assert.deepEqual(there.json.output, here.json.output, "the same result, to the last digit");
  for (const wrong of [[1, 2], { input: "text" }, { inputs: [] }]) {
    const [expected, got] = await Promise.all([post(`${url}/infer`, wrong), post(`${gateway.url}/infer`, wrong)]);
    assert.equal(got.status, 422);
    assert.equal(got.json.error.message, expected.json.error.message);
  }
  const several = await post(`${gateway.url}/infer`, { inputs: [item(0.1), [1], item(0.2)] });
  assert.equal(several.status, 200);
  assert.equal(several.json.outputs[1].error.code, "INVALID_INPUT");
  assert.equal(several.json.outputs.length, 3);
  const many = await Promise.all(Array.from({ length: 100 }, (_, i) => post(`${gateway.url}/infer`, item(i / 100))));
  assert.ok(many.every(({ status }) => status === 200));
  // What waits together runs together; on a busy machine items may come one by one for a while.
  const hundred = { inputs: Array.from({ length: 100 }, (_, i) => item(i / 100)) };
  while ((await post(`${gateway.url}/infer`, hundred)).json.batch_size <= 1);
  const infer = { inputs: [{ name: "input", shape: [1, 768], datatype: "FP32", data: sent }] };
  const kserve = await post(`${gateway.url}/v2/models/mlp/infer`, infer);
  assert.equal(kserve.status, 200, JSON.stringify(kserve.json));
  assert.equal((await get(`${gateway.url}/v1/models`)).json.data[0].state, "ready");
});

test("a worker serves health and metrics only; both show the fleet's metrics, as documented", { skip }, async (t) => {
  const { gateway, worker } = await fleet(t);
  assert.equal((await post(`${gateway.url}/infer`, item(1))).status, 200);
  assert.equal((await fetch(`${worker.url}/readyz`)).status, 200);
  assert.equal((await post(`${worker.url}/infer`, item(1))).status, 404);
  const metrics = async ({ url }: Member): Promise<string> => (await get(`${url}/metrics`)).text;
  // The queue's figures are a second old.
  const isIdle = /^sheaf_fleet_waiting_pulls\{batcher="mlp",lane="interactive"\} 1$/m;
  await until(async () => isIdle.test(await metrics(gateway)));
  const texts = await Promise.all([gateway, worker].map(metrics));
  const shown = new Map(texts.flatMap((text) => [...text.matchAll(/^# TYPE (sheaf_fleet_\S+) (\S+)$/gm)]).map(([, name, type]) => [name, type])); // prettier-ignore
  const page = readFileSync(new URL("../../../../docs/reference/metrics.md", import.meta.url), "utf8");
  const documented = new Map([...page.matchAll(/^\| `(sheaf_fleet_[a-z_]+)` *\| (\w+) /gm)].map(([, name, type]) => [name, type])); // prettier-ignore
  assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(documented));
  assert.match(texts[0]!, /^sheaf_fleet_workers\{batcher="mlp"\} 1$/m);
  assert.match(texts[0]!, /^sheaf_fleet_queue_available\{batcher="mlp"\} 1$/m);
  assert.match(texts[1]!, /^sheaf_fleet_delivered_items_total\{batcher="mlp"\} 1$/m);
});

test("without a worker a gateway answers 503, /readyz too; it serves again when one comes", { skip }, async (t) => {
  const { gateway, worker } = await fleet(t);
  worker.process.child.kill("SIGTERM");
  assert.equal(await worker.process.ended, 0);
  await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503);
  assert.deepEqual((await get(`${gateway.url}/readyz`)).json, {
    status: "unavailable",
    models: [{ name: "mlp", state: "unavailable", reason: "no worker is alive" }],
  });
  const refused = await post(`${gateway.url}/infer`, item(1));
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.match(refused.json.error.message, /no worker is alive/);
  await ready(start(t, "worker"));
  await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200);
  assert.equal((await post(`${gateway.url}/infer`, item(1))).status, 200);
});

test("a deadline is a 504, a hung-up client's item is not run, and SIGTERM drains a gateway", { skip }, async (t) => {
  const { gateway, worker } = await fleet(t, { MAX_BATCH_SIZE: "1" });
  const busy = Array.from({ length: 60 }, (_, i) => post(`${gateway.url}/infer`, item(i), { "x-sheaf-priority": "immediate" })); // prettier-ignore
  const late = await post(`${gateway.url}/infer`, item(1), { "x-request-timeout-ms": "1", "x-sheaf-priority": "bulk" });
  assert.ok(late.status === 504 || late.status === 429, String(late.status));
  const controller = new AbortController();
  const gone = post(`${gateway.url}/infer`, item(2), { "x-sheaf-priority": "bulk" }, controller.signal);
  await sleep(5);
  controller.abort();
  // On a machine that is slow just now it may have been answered before.
  await gone.catch(() => undefined);
  // A request that has not been read when the signal comes is refused.
  await until(async () => (await itemsTaken(gateway.url)) >= busy.length);
  gateway.process.child.kill("SIGTERM");
  assert.ok(
    (await Promise.all(busy)).every(({ status }) => status === 200),
    "what is in is finished",
  );
  assert.equal(await gateway.process.ended, 0);
  const { text } = await get(`${worker.url}/metrics`);
  const ran = Number(/^sheaf_items_total\{batcher="mlp",outcome="ok"\} (\d+)$/m.exec(text)![1]);
  assert.ok(ran >= 60 && ran <= 62, `${ran} items ran`);
});

test("what a fleet warns of is JSON in the log, and a worker without JetStream is not ready", { skip }, async (t) => {
  const plain = await startNats(["-js=false"]);
  try {
    const worker = start(t, "worker", { NATS_URL: `nats://${plain.url}` });
    const url = await listening(worker);
    await until(async () => /JetStream does not answer/.test(await reasonOf(url)));
    await until(() => /JetStream does not answer/.test(worker.output.stdout));
    assert.doesNotMatch(worker.output.stdout, /"msg":"ready"/);
    assert.equal(worker.output.stderr, "");
    for (const line of worker.output.stdout.trim().split("\n")) JSON.parse(line);
    assert.match(worker.output.stdout, /"role":"worker","nats":"nats:\/\/127\.0\.0\.1:\d+","msg":"joining a fleet"/);
  } finally {
    await plain.stop();
  }
});

test("a gateway that starts again refuses nothing that comes while it starts", { skip }, async (t) => {
  const { gateway } = await fleet(t);
  gateway.process.child.kill("SIGKILL");
  await gateway.process.ended;
  const { port } = new URL(gateway.url);
  const successor = sheaf(t, ["serve", "mlp", "--role", "gateway", "--port", port], {
    NATS_URL: nats.url,
    NATS_HOLD_MS: "30000",
  });
  await until(async () => (await fetch(`${gateway.url}/livez`).catch(() => undefined))?.status === 200);
  assert.equal((await post(`${gateway.url}/infer`, item(1))).status, 200);
  assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200);
  assert.equal(successor.output.stderr, "");
});

test("a gateway tells callers what its model waits for: NATS, a worker, or one of its shape", { skip }, async (t) => {
  const refusalOf = async (gateway: SheafProcess): Promise<string> =>
    String((await post(`${await listening(gateway)}/infer`, item(1))).json.detail);
  const lone = start(t, "gateway", { NATS_URL: "127.0.0.1:9", NATS_HOLD_MS: "0" });
  await until(async () => /^mlp is not ready: not connected to NATS: .*; see \/readyz\.$/.test(await refusalOf(lone)));
  const waiting = start(t, "gateway", { NATS_HOLD_MS: "0" });
  await until(async () => (await refusalOf(waiting)).startsWith("mlp is not ready: no worker is alive;"));
  const other = join(temporaryFolder(t), "mlp.mjs");
  writeFileSync(other, "export default { run: (items) => items };\n");
  const stranger = sheaf(t, ["serve", other, "--role", "worker", "--port", "0"], { NATS_URL: nats.url });
  await listening(stranger);
  await until(async () =>
    (await refusalOf(waiting)).startsWith("mlp is not ready: the workers of this name serve another model;"),
  );
  const warning = waiting.output.stdout.split("\n").find((line) => line.includes("its workers serve"));
  assert.equal((JSON.parse(warning!) as { level: number }).level, 40);
});

test("a gateway needs NATS_URL, and says so", async (t) => {
  const alone = sheaf(t, ["serve", "mlp", "--role", "gateway"]);
  assert.equal(await alone.ended, 2);
  assert.match(alone.output.stderr, /A gateway needs NATS_URL/);
});

for (const role of ["gateway", "worker"])
  test(
    `a ${role} waits for a server that is not there yet, and says so in its log and on /readyz`,
    { skip },
    async (t) => {
      const waiting = start(t, role, { NATS_URL: "nats://127.0.0.1:1" });
      const url = await listening(waiting);
      await until(() => waiting.output.stdout.includes("NATS cannot be reached, and is tried again"));
      await until(async () => /not connected to NATS: connection refused/.test(await reasonOf(url)));
      assert.equal((await fetch(`${url}/readyz`)).status, 503);
      assert.doesNotMatch(waiting.output.stdout, /"msg":"ready"/);
      waiting.child.kill("SIGTERM");
      assert.equal(await waiting.ended, 0);
    },
  );

test("what can never be right about NATS ends the process, naming the setting", { skip }, async (t) => {
  const wrong: [env: Record<string, string>, message: RegExp][] = [
    [{ NATS_URL: "http://127.0.0.1:4222" }, /NATS_URL must be addresses such as nats:.*got \\"http:/],
    [{ NATS_CREDS_FILE: "/no/such/file" }, /NATS_CREDS_FILE cannot be read/],
    [{ NATS_CREDS_FILE: "/dev/null" }, /NATS_CREDS_FILE holds no credentials/],
    [{ NATS_TLS_CA_FILE: "/no/such/file" }, /NATS_TLS_CA_FILE cannot be read/],
    [{ NATS_TLS_CA_FILE: "/dev/null" }, /NATS_TLS_CA_FILE holds no certificate/],
    [{ NATS_TLS_CERT_FILE: "/dev/null" }, /NATS_TLS_CERT_FILE holds no certificate/],
    [{ NATS_TLS_KEY_FILE: "/dev/null" }, /NATS_TLS_KEY_FILE holds no private key/],
  ];
  for (const [env, message] of wrong) {
    const ended = start(t, "gateway", env);
    assert.equal(await ended.ended, 1);
    assert.match(ended.output.stdout, message);
  }
});

test("a nats-server that is too old ends the process, naming its version and the lowest one", { skip }, async (t) => {
  const old = await wayToNats((greeting) => greeting.replace(/"version":"[^"]*"/, `"version":"2.9.25"`));
  t.after(old.close);
  for (const role of ["gateway", "worker"]) {
    const ended = start(t, role, { NATS_URL: old.url });
    assert.equal(await ended.ended, 1);
    assert.match(ended.output.stdout, /NATS_URL names a nats-server 2\.9\.25; a fleet needs 2\.10 or newer/);
  }
});

test("a process that gives its credentials too late, for want of a processor, tries again", { skip }, async (t) => {
  const strict = await wayToNats((greeting, connection) =>
    connection === 1 ? `${greeting}-ERR 'Authentication Timeout'\r\n` : greeting,
  );
  t.after(strict.close);
  const late = start(t, "all", { NATS_URL: strict.url });
  assert.equal((await post(`${await ready(late)}/infer`, item(1))).status, 200);
  assert.match(late.output.stdout, /NATS cannot be reached, and is tried again: Authentication Timeout/);
});

/** A way to the NATS server on which what the server says of itself is another text. Connections count from 1. */
async function wayToNats(
  greet: (greeting: string, connection: number) => string,
): Promise<{ url: string; close(): void }> {
  const [host, port] = nats.url.split(":");
  let connections = 0;
  const server = createServer((near) => {
    const connection = ++connections;
    const far = connect(Number(port), host!);
    // Newer servers say it again once a client is connected.
    far.on("data", (data) => {
      const text = data.toString("latin1");
      near.write(text.includes("INFO {") ? greet(text, connection) : text, "latin1");
    });
    near.pipe(far);
    near.on("error", () => far.destroy()).on("close", () => far.destroy());
    far.on("error", () => near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => void server.close() };
}

test("the right credentials are let in, wrong ones end the process with the reason", { skip }, async (t) => {
  const guarded = await startNats(["--user", "sheaf", "--pass", "secret"]);
  try {
    const env = { NATS_URL: guarded.url, NATS_USER: "sheaf" };
    for (const role of ["gateway", "worker"]) {
      const wrong = start(t, role, { ...env, NATS_PASSWORD: "guess" });
      assert.equal(await wrong.ended, 1);
      assert.match(wrong.output.stdout, /NATS refused the connection/);
    }
    const right = start(t, "all", { ...env, NATS_PASSWORD: "secret" });
    assert.equal((await post(`${await ready(right)}/infer`, item(1))).status, 200);
    const inUrl = start(t, "all", { NATS_URL: `nats://sheaf:secret@${guarded.url}` });
    assert.equal((await post(`${await ready(inUrl)}/infer`, item(1))).status, 200);
    assert.doesNotMatch(inUrl.output.stdout, /secret/);
    const keeper = await startNats(["--auth", "token"]);
    t.after(() => keeper.stop());
    await ready(start(t, "all", { NATS_URL: `nats://token@${keeper.url}` }));
  } finally {
    await guarded.stop();
  }
});

test("TLS: a server whose certificate is of NATS_TLS_CA_FILE is spoken to, any other is not", { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert, ...subject], { stdio: "ignore" }); // prettier-ignore
  const otherKey = join(folder, "other.pem");
  execFileSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", otherKey], { stdio: "ignore" });
  const served = ["--tls", "--tlscert", cert, "--tlskey", key];
  const secured = await startNats(served);
  const asking = await startNats([...served, "--tlscacert", cert, "--tlsverify"]);
  try {
    const right = start(t, "all", { NATS_URL: secured.url, NATS_TLS_CA_FILE: cert });
    assert.equal((await post(`${await ready(right)}/infer`, item(1))).status, 200);
    const wrong = start(t, "gateway", { NATS_URL: secured.url });
    const url = await listening(wrong);
    await until(async () => /not connected to NATS: .*certificate\. See NATS_TLS_CA_FILE\./.test(await reasonOf(url)));
    const without = start(t, "gateway", { NATS_URL: asking.url, NATS_TLS_CA_FILE: cert });
    const urlWithout = await listening(without);
    await until(async () => /see NATS_TLS_CERT_FILE and NATS_TLS_KEY_FILE/.test(await reasonOf(urlWithout)));
    const wrongKey = start(t, "gateway", {
      NATS_URL: asking.url,
      NATS_TLS_CERT_FILE: cert,
      NATS_TLS_KEY_FILE: otherKey,
    });
    assert.equal(await wrongKey.ended, 1);
    assert.match(wrongKey.output.stdout, /NATS_TLS_KEY_FILE is not the key of NATS_TLS_CERT_FILE/);
    const own = { NATS_TLS_CA_FILE: cert, NATS_TLS_CERT_FILE: cert, NATS_TLS_KEY_FILE: key };
    const known = start(t, "all", { NATS_URL: asking.url, ...own });
    assert.equal((await post(`${await ready(known)}/infer`, item(1))).status, 200);
  } finally {
    await secured.stop();
    await asking.stop();
  }
});

test("without durability a fleet answers the same, and a full worker refuses", { skip }, async (t) => {
  const { gateway } = await fleet(t, { NATS_DURABILITY: "none", QUEUE_MAX_SIZE: "40" });
  const replies = await Promise.all(Array.from({ length: 300 }, (_, i) => post(`${gateway.url}/infer`, item(i / 300))));
  const statuses = new Set(replies.map(({ status }) => status));
  assert.ok(
    [...statuses].every((status) => status === 200 || status === 429),
    [...statuses].join(),
  );
  assert.ok(statuses.has(200));
});

test(
  "a Python model is shared by a fleet: its workers say what it takes, and a gateway needs neither Python nor the file",
  { skip: skip || skipWithoutPython },
  async (t) => {
    const env = { NATS_URL: nats.url, WARMUP_BATCHES: "2", NATS_HOLD_MS: "0" };
    const gateway = sheaf(t, ["serve", "words.py", "named.py", "--role", "gateway", "--port", "0"], {
      ...env,
      PYTHON: "python-that-is-not-there",
    });
    const url = await listening(gateway);
    await until(async () => (await reasonOf(url)) === "waits for a worker of words");
    assert.equal((await post(`${url}/infer/words`, JSON.stringify("a"))).status, 503);
    sheaf(t, ["serve", ...["words", "named"].map(pythonModel), "--role", "worker", "--port", "0"], env);
    await ready(gateway);
    const { status, json } = await post(`${url}/infer`, { inputs: ["a", "fail", "b"] });
    assert.equal(status, 200);
    assert.deepEqual([json.outputs[0], json.outputs[2]], ["A", "B"]);
    assert.match(json.outputs[1].error.message, /this one is bad/);
    const wrong = await post(`${url}/infer`, 7);
    assert.deepEqual([wrong.status, wrong.json.error.code], [422, "INVALID_INPUT"]);
    const record = { image: [1, 2, 3, 4, 5, 6], title: "a", more: null, flag: [true] };
    assert.deepEqual((await post(`${url}/infer/named`, record)).json.output.label, "a!");
    const tooLarge = await post(`${url}/infer/named`, { ...record, image: [1, 2, 3, 4, 5, 600] });
    assert.equal(tooLarge.json.error.param, "image[5]");
    gateway.child.kill("SIGTERM");
    assert.equal(await gateway.ended, 0);
  },
);

test("a gateway that waits for the workers of a Python model ends on SIGTERM", { skip }, async (t) => {
  const env = { NATS_URL: nats.url, NATS_HOLD_MS: "0" };
  const waiting = sheaf(t, ["serve", "nobody.py", "--role", "gateway", "--port", "0"], env);
  const url = await listening(waiting);
  await until(async () => (await reasonOf(url)) === "waits for a worker of nobody");
  waiting.child.kill("SIGTERM");
  assert.equal(await waiting.ended, 0);
});
