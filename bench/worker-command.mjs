/**
 * `npm run bench -- worker-command [--python PATH]`: one batch to a Python worker and back, where the model gives back what
 * it got: what the boundary costs over the model's own time. Beside it the same in a worker process in JavaScript. The
 * two take turns in slices; each pair of neighbouring slices gives one ratio. Half a minute.
 */
import { spawnSync } from "node:child_process";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { runHandle } from "sheaf/executors";
import { workerCommand, workerProcess } from "sheaf/node";
import { machine, median, table } from "./lib/machine.mjs";

const pairs = 21;
const sliceMs = 200;
/** Of each slice, not counted: the other side's turn has left caches and processes cold. */
const unmeasured = 5;
const fewest = 5;

const at = process.argv.indexOf("--python");
const python = at < 0 ? "python3" : process.argv[at + 1];
const script = fileURLToPath(new URL("./worker-command/echo.py", import.meta.url));
const echoUrl = new URL("./worker-echo-worker.mjs", import.meta.url);

const vectors = (n) => Array.from({ length: n }, (_, i) => new Float32Array(768).fill(i));
const texts = (n) =>
  Array.from({ length: n }, (_, i) => `Item ${i}: a sentence of some sixty characters, as a model gets.`);
const payloads = {
  "1 text": { inputs: "text", items: texts(1) },
  "64 texts": { inputs: "text", items: texts(64) },
  "1 × 768 floats": { inputs: "float32[768]", items: vectors(1) },
  "64 × 768 floats": { inputs: "float32[768]", items: vectors(64) },
  "1 JSON value": { inputs: "json", items: [{ id: 1, tags: ["a", "b"] }] },
};

const versions = spawnSync(
  python,
  ["-c", "import sys; print(sys.version.split()[0]); import numpy; print(numpy.__version__)"],
  {
    encoding: "utf8",
  },
);
const [version, numpy = "none"] = versions.stdout.trim().split("\n");
if (!version) throw new Error(`${python} cannot be started: ${versions.error?.message ?? versions.stderr}`);

const rows = [["batch", "Python µs", "quiet µs", "in Python µs", "JavaScript process µs", "Python ÷ JavaScript"]];
const js = workerProcess(echoUrl, { niceness: 0 });
await js.ready();
for (const [name, { inputs, items }] of Object.entries(payloads)) {
  const executor = workerCommand({ command: python, args: [script, inputs], niceness: 0 });
  await executor.ready();
  const { ours, inside, base, ratios, quietest } = await compare(executor, js, items);
  const figures = [median(ours), quietest, median(inside), median(base)].map((us) => us.toFixed(0));
  rows.push([name, ...figures, median(ratios).toFixed(2)]);
  await executor.close();
}
await js.close();
console.log(machine());
console.log(
  `Python ${version}, NumPy ${numpy}; ${pairs} pairs of slices of ${sliceMs} ms; load ${loadavg()[0].toFixed(1)}`,
);
console.log("npm run bench -- worker-command" + (at < 0 ? "" : " --python …") + "\n");
console.log(table(rows));
console.log("\n“quiet”: the median of the quietest slice, when other programs left the cores alone the longest.");
console.log("“in Python”: decoding, the model that does nothing, encoding, as measured there.");

/** All round trips in microseconds, the ratios of neighbouring slices, and the least of our slices' medians. */
async function compare(executor, other, items) {
  const sides = [
    { executor, times: [], inside: [] },
    { executor: other, times: [], inside: [] },
  ];
  const ratios = [];
  const ourMedians = [];
  for (const side of sides) await slice(side, items);
  for (const side of sides) side.times.length = side.inside.length = 0;
  for (let pair = 0; pair < pairs; pair++) {
    // Who goes first changes, so that a drift of the machine's speed favours neither.
    const medians = [0, 0];
    for (const i of pair % 2 === 0 ? [0, 1] : [1, 0]) medians[i] = await slice(sides[i], items);
    ratios.push(medians[0] / medians[1]);
    ourMedians.push(medians[0]);
  }
  const [{ times: ours, inside }, { times: base }] = sides;
  return { ours, inside, base, ratios, quietest: Math.min(...ourMedians) };
}

async function slice({ executor, times, inside }, items) {
  const { signal } = new AbortController();
  const here = [];
  const endAtMs = performance.now() + sliceMs;
  for (let i = 0; i < unmeasured + fewest || performance.now() < endAtMs; i++) {
    const handle = runHandle({ size: items.length, signal });
    const startedAtMs = performance.now();
    await executor.run(items, handle);
    if (i < unmeasured) continue;
    here.push((performance.now() - startedAtMs) * 1000);
    inside.push(handle.runMs * 1000);
  }
  times.push(...here);
  return median(here);
}
