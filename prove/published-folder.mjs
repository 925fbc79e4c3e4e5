/**
 * `npm run prove -- published-folder --folder FOLDER [--python python3]`: serves a published sentence-embedding folder (a
 * BERT in the Hugging Face layout, such as all-MiniLM-L6-v2, with model.safetensors; mean pooling, normalised) and
 * compares its vectors with a float64 reference of its own weights and with the tokens of the Python `tokenizers` package
 * (pip install numpy tokenizers). A folder without model.onnx gets one, written here from the weights. Nothing is
 * downloaded: without a folder the proof is skipped and says so. About a minute.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { machine } from "../bench/lib/machine.mjs";
import { serveModel } from "../packages/sheaf-server/dist/load/http/server-process.js";
import { bertOnnx, readSafetensors } from "./lib/bert-onnx.mjs";

const { values } = parseArgs({
  options: { folder: { type: "string" }, python: { type: "string", default: "python3" } },
});
if (values.folder === undefined) {
  console.error("SKIPPED: name a folder with --folder; no published model comes with this repository.");
  process.exit(process.env.CI === "true" ? 1 : 0);
}
const folder = resolve(values.folder);
const largestDifference = 1e-5;
const entry = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));
const texts = [
  "That is a happy person",
  "That is a very happy person",
  "Today is a sunny day",
  "The cat sits outside",
  "A man is playing guitar",
  "Naïve café, 你好 🙂 — unbelievable!",
  "def f(x): return x ** 2  # squares",
  "a",
  "the quick brown fox jumps over the lazy dog ".repeat(60),
  ...Array.from({ length: 23 }, (_, i) => `Sentence number ${i} ${"and some more words ".repeat(i)}`),
];

const reference = referenceOf(texts);
const served = mkdtempSync(join(tmpdir(), "sheaf-folder-"));
let failures = 0;
try {
  completeFolder(served);
  const server = await serveModel({ entry, model: served, flags: ["--warmup-batches", "2"] });
  try {
    await compare(server.origin);
  } finally {
    await server.stop();
  }
} finally {
  rmSync(served, { recursive: true });
}
process.exitCode = failures === 0 ? 0 : 1;

function referenceOf(items) {
  const script = fileURLToPath(new URL("./lib/bert-reference.py", import.meta.url));
  const { status, stdout, stderr } = spawnSync(values.python, [script, folder], {
    input: JSON.stringify(items),
    maxBuffer: 2 ** 28,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${values.python} gives no reference (pip install numpy tokenizers): ${stderr}`);
  return JSON.parse(stdout);
}

/** The folder's own files, and a model.onnx where it has none. */
function completeFolder(copy) {
  for (const name of readdirSync(folder)) symlinkSync(join(folder, name), join(copy, name));
  if (existsSync(join(folder, "model.onnx")) || existsSync(join(folder, "onnx", "model.onnx"))) return;
  const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  writeFileSync(join(copy, "model.onnx"), bertOnnx(config, readSafetensors(join(folder, "model.safetensors"))));
}

async function compare(origin) {
  const { data } = await (await fetch(`${origin}/v1/models`)).json();
  const [{ id: model, note }] = data;
  const embed = (text) => embedding(origin, model, text);
  const startedAtMs = performance.now();
  const together = await Promise.all(texts.map(embed));
  const tookMs = performance.now() - startedAtMs;
  console.log(machine());
  console.log(`npm run prove -- published-folder: ${note}`);
  check("vectors equal the float64 reference", worst(together, reference), largestDifference);
  const alone = [];
  for (const text of texts) alone.push(await embed(text));
  check("and are in a batch what they are alone", worst(together, alone), largestDifference);
  const miscounted = texts.filter((_, i) => together[i].tokens !== reference[i].ids.length);
  check("as many tokens as the Python tokenizer gives", miscounted.length, 0);
  const similarity = (a, b) => together[a].vector.reduce((sum, value, i) => sum + value * together[b].vector[i], 0);
  const [near, far] = [similarity(0, 1), similarity(0, 2)];
  console.log(`"${texts[0]}" and "${texts[1]}": ${near.toFixed(3)}; and "${texts[2]}": ${far.toFixed(3)}`);
  check("the nearer sentence is nearer", far - near, 0);
  console.log(`${texts.length} texts at once in ${tookMs.toFixed(0)} ms.`);
}

async function embedding(origin, model, input) {
  const response = await fetch(`${origin}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, input }),
  });
  const json = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(json));
  return { vector: json.data[0].embedding, tokens: json.usage.prompt_tokens };
}

function worst(actual, expected) {
  return actual.reduce(
    (most, { vector }, i) =>
      vector.reduce((so, value, j) => Math.max(so, Math.abs(value - expected[i].vector[j])), most),
    0,
  );
}

function check(promise, got, most) {
  const holds = got <= most;
  if (!holds) failures++;
  console.log(`${holds ? "✔" : "✖"} ${promise}: ${Number(got.toPrecision(2))} (at most ${most})`);
}
