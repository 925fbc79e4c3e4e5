import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { get, post, type Reply } from "../asking.js";
import { folderOf, tinyBert, width } from "../runners/made-folders.js";
import { dynamicInt8, folder, scaling, trainingBatchNorm, twoInputs, write } from "../runners/made-models.js";
import { ready, sheaf } from "./sheaf-process.js";

after(() => rmSync(folder, { recursive: true, force: true }));

const bert = { architectures: ["BertModel"], hidden_size: width, max_position_embeddings: 16, pad_token_id: 0 };
const reranker = { ...bert, architectures: ["BertForSequenceClassification"], id2label: { 0: "LABEL_0" } };

const moduleOf = (name: string, run: string): string => write(name, `export default { run: (items) => ${run} };`);

/** The value of one sample of /metrics; undefined where there is none. */
async function sample(url: string, name: string): Promise<number | undefined> {
  const { text } = await get(`${url}/metrics`);
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length));
}

test("a model whose results depend on the batch runs one by one: the log, /v1/models and the page say so", async (t) => {
  const path = write("norm.onnx", trainingBatchNorm());
  for (const [batchDependent, size] of [
    ["single", 1],
    ["batch", 32],
  ] as const) {
    const served = sheaf(t, ["serve", path, "--port", "0"], { BATCH_DEPENDENT: batchDependent, WARMUP_BATCHES: "0" });
    const url = await ready(served);
    const model = (await get(`${url}/v1/models/norm`)).json;
    assert.deepEqual([model["self_test"], model["max_batch_size"]], ["dependent", size]);
    const warning = /Its results depend on their batch-mates: in a batch they differ from those of single items/;
    assert.match(String(model["note"]), warning);
    const warned = served.output.stdout.split("\n").filter((line) => line.includes('"level":40'));
    assert.match(warned.join(), warning);

    const end = new AbortController();
    const events = await fetch(`${url}/dashboard/events`, { signal: end.signal });
    const { value } = await events.body!.getReader().read();
    end.abort();
    const [hello] = JSON.parse(/^data: (.*)$/m.exec(new TextDecoder().decode(value))![1]!).batchers;
    assert.match(hello.warning, warning);
    assert.equal(hello.maxBatchSize, size);

    const { json } = await post(`${url}/infer`, { inputs: Array.from({ length: 40 }, (_, i) => [i, i * i]) });
    const isAsAlone = json.outputs.every((output: number[]) => output.every((number) => number === 0));
    assert.equal(isAsAlone, batchDependent === "single");
  }
});

test("models of every kind at once, each with its own batcher and settings, under /infer, /v2, /v1 and /rerank", async (t) => {
  const config = join(folder, "kinds.config.json");
  const models = [
    { model: write("scale.onnx", scaling(["batch", 4])), maxBatchSize: 2 },
    { model: write("two.onnx", twoInputs()), name: "pair", queueMaxSize: 3 },
    { model: write("int8.onnx", dynamicInt8()) },
    { model: folderOf("sentences", { "model.onnx": tinyBert(), "config.json": bert }) },
    { model: folderOf("judge", { "onnx/model.onnx": tinyBert(1), "config.json": reranker }) },
    { model: moduleOf("shout.mjs", "items.map((text) => text.toUpperCase())") },
  ];
  writeFileSync(config, JSON.stringify({ port: 0, warmupBatches: 2, models }));
  const served = sheaf(t, ["serve", "--config", config]);
  const url = await ready(served);
  const infer = (model: string, input: unknown): Promise<Reply> => post(`${url}/infer/${model}`, { input });
  assert.deepEqual((await infer("scale", [1, 2, 3, 4])).json.output, [3, 5, 7, 9]);
  assert.deepEqual((await infer("pair", { ids: [1, 2], bias: [0, 0, 0, 0] })).json.output.next, [2, 3]);
  assert.equal((await infer("sentences", "the cat")).json.output.length, width);
  assert.equal((await infer("shout", "loud")).json.output, "LOUD");

  // Each its own limits: 3 wait at most before one, 2 run together at most in another.
  const ids = { ids: [1], bias: [0, 0, 0, 0] };
  const pairs = await post(`${url}/infer/pair`, { inputs: [ids, ids, ids, ids] });
  assert.deepEqual([pairs.status, pairs.json.error.code], [422, "INVALID_INPUT"]);
  const scaled = await post(`${url}/infer/scale`, { inputs: Array.from({ length: 8 }, () => [1, 2, 3, 4]) });
  assert.deepEqual([scaled.status, scaled.json.batch_size], [200, 2]);

  const shouted = await post(`${url}/v2/models/shout/infer`, {
    inputs: [{ name: "input", datatype: "BYTES", shape: [1], data: ['"hey"'] }],
  });
  assert.deepEqual(shouted.json.outputs[0].data, ['"HEY"']);
  const vector = await post(`${url}/v2/models/sentences/infer`, {
    inputs: [{ name: "text", datatype: "BYTES", shape: [2], data: ["cat", "the dog"] }],
  });
  assert.deepEqual(vector.json.outputs[0].shape, [2, width]);
  const embedded = await post(`${url}/v1/embeddings`, { model: "sentences", input: ["cat", "dog"] });
  assert.equal(embedded.json.data.length, 2);
  const ranked = await post(`${url}/rerank`, { model: "judge", query: "cat", texts: ["dog", "the cat sits"] });
  assert.deepEqual([ranked.status, ranked.json.length], [200, 2]);

  const { data } = (await get(`${url}/v1/models`)).json as { data: { id: string; note?: string }[] };
  const notes = new Map(data.map(({ id, note }) => [id, note ?? ""]));
  assert.deepEqual([...notes.keys()], ["scale", "pair", "int8", "sentences", "judge", "shout"]);
  for (const name of ["scale", "pair", "int8", "sentences", "judge"]) assert.match(notes.get(name)!, /Runs on cpu\./);
  const log = served.output.stdout;
  assert.match(
    log,
    /"level":40,.*"model":"int8".*depend on their batch-mates: in a batch they differ from those of single items/,
  );
  assert.match(log, /"model":"scale","note":"Runs on cpu\.","msg":"model is ready"/);
  assert.match(
    log,
    /"model":"sentences","note":"[^"]*","unreadFields":"config\.json: hidden_size","msg":"model is ready"/,
  );
  served.child.kill("SIGTERM");
  assert.equal(await served.ended, 0);
});

test("a broken file, a missing tokenizer and a wrong device end with 1 and say why", async (t) => {
  const cases: [string[], RegExp][] = [
    [[write("broken.onnx", "not a model")], /broken\.onnx cannot be served: .*[Pp]rotobuf/],
    [
      [folderOf("untold", { "model.onnx": tinyBert(), "config.json": bert, "tokenizer.json": undefined })],
      /untold cannot be served: .*has no tokenizer\.json: export the tokenizer as a fast one/,
    ],
    [
      [write("device.onnx", scaling(["batch", 4])), "--inference-device", "cuda:9"],
      /device\.onnx cannot be served on INFERENCE_DEVICE cuda:9: cuda:9: /,
    ],
    [["mlp", "--inference-device", "cuda:9"], /mlp cannot be served on INFERENCE_DEVICE cuda:9: cuda:9: /],
    [[moduleOf("typed.ts", "items")], /typed\.ts: this Node \(v20.*\) does not load TypeScript; compile it to \.js/],
  ];
  const canLoadTypeScript = (process.features as { typescript?: unknown }).typescript !== undefined;
  for (const [words, message] of cases) {
    if (words[0]!.endsWith(".ts") && canLoadTypeScript) continue;
    const served = sheaf(t, ["serve", "--port", "0", ...words]);
    assert.equal(await served.ended, 1);
    assert.match(served.output.stderr, message);
    assert.doesNotMatch(served.output.stdout, /"msg":"ready"/);
  }
  const wrong = sheaf(t, ["serve", "mlp"], { INFERENCE_DEVICE: "tpu" });
  assert.equal(await wrong.ended, 2);
  assert.match(
    wrong.output.stderr,
    /INFERENCE_DEVICE must be auto, or cpu, webgpu, cuda or cuda:N, several with commas, got "tpu"/,
  );
});

test("inputs that crash their workers cost nobody else an answer, however many there are, and none runs twice", async (t) => {
  const mortal = moduleOf(
    "mortal.mjs",
    `items.map((item) => (String(item).startsWith("die") ? process.exit(1) : item))`,
  );
  const served = sheaf(t, ["serve", mortal, "--port", "0", "--max-batch-size", "4"], { WORKERS: "2" });
  const url = await ready(served);
  assert.equal((await post(`${url}/infer`, { input: "live" })).status, 200);
  const restarts = 'sheaf_worker_restarts_total{batcher="mortal"}';
  const workers = (state: string): string => `sheaf_workers{batcher="mortal",state="${state}"}`;
  assert.equal(await sample(url, workers("ready")), 2);

  // A crash costs the item that made it; the worker is started again, and what comes meanwhile waits for it.
  const first = await post(`${url}/infer`, { input: "die" });
  assert.deepEqual([first.status, first.json.error.code], [500, "WORKER_CRASHED"]);
  const replies = await Promise.all(["a", "b", "c"].map((input) => post(`${url}/infer`, { input })));
  assert.deepEqual(
    replies.map(({ status }) => status),
    [200, 200, 200],
  );
  while ((await sample(url, restarts)) !== 1 || (await sample(url, workers("ready"))) !== 2);
  assert.equal((await fetch(`${url}/readyz`)).status, 200);

  // The same input once more is not run; neither is it in a list, whose other items are.
  const again = await post(`${url}/infer`, { input: "die" });
  assert.deepEqual([again.status, again.json.error.code], [422, "CRASHING_INPUT"]);
  const list = await post(`${url}/infer`, { inputs: ["a", "die", "b"] });
  assert.deepEqual([list.json.outputs[0], list.json.outputs[1].error.code, list.json.outputs[2]], ["a", "CRASHING_INPUT", "b"]); // prettier-ignore
  assert.equal(await sample(url, restarts), 1);
  const crashing = (outcome: string): string => `sheaf_crashing_inputs_total{batcher="mortal",outcome="${outcome}"}`;
  assert.deepEqual([await sample(url, crashing("crashed")), await sample(url, crashing("refused"))], [1, 2]);

  // New inputs that crash them are each found, and then they are no reason to serve nobody.
  for (let crash = 0; crash < 8; crash++) {
    await Promise.all(["x", "y"].map((one) => post(`${url}/infer`, { input: `die ${crash} ${one}` })));
    assert.equal((await post(`${url}/infer`, { input: "live" })).status, 200);
  }
  while ((await fetch(`${url}/readyz`)).status !== 200);
  served.child.kill("SIGTERM");
  await served.ended;
});

test("a tenant whose inputs keep crashing workers runs apart from the others until its inputs are good again", async (t) => {
  const mortal = moduleOf(
    "mortal.mjs",
    `items.map((item) => (String(item).startsWith("die") ? process.exit(1) : item))`,
  );
  const served = sheaf(t, ["serve", mortal, "--port", "0", "--max-batch-size", "4"], { TENANT_BY: "header" });
  const url = await ready(served);
  const infer = async (tenant: string, input: string): Promise<number> =>
    (await post(`${url}/infer`, { input }, { "x-tenant": tenant })).status;
  const restarts = (): Promise<number | undefined> => sample(url, 'sheaf_worker_restarts_total{batcher="mortal"}');
  assert.equal(await infer("odd", "die"), 500);
  assert.equal(await infer("good", "live"), 200);
  while ((await restarts()) !== 1);
  // From now on they end no worker that others use.
  for (let crash = 1; crash <= 8; crash++) {
    const replies = await Promise.all([
      infer("odd", `die ${crash}`),
      infer("good", "live"),
      infer("odd", `live ${crash}`),
    ]);
    assert.deepEqual(replies, [500, 200, 200]);
  }
  assert.equal(await restarts(), 1);
  for (let passed = 0; passed < 40; passed++) assert.equal(await infer("odd", `live ${passed}`), 200);
  assert.equal(await infer("odd", "die among others"), 500);
  while ((await restarts()) !== 2);
});
