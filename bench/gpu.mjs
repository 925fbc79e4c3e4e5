/**
 * What batching gains on a GPU: `npm run bench -- gpu`. About ten minutes; `--tiny` is a trial of the command itself.
 *
 * `mlp` and a transformer encoder of MiniLM's shape with random weights, and both in PyTorch behind the same server: the cost of
 * batches from 1 to 256, and what callers get without batching, with a fixed window, and with auto.
 *
 *   --device NAME   as INFERENCE_DEVICE (default: auto). PyTorch takes CUDA where it finds it.
 *   --python PATH   a Python that has PyTorch and NumPy (default: python3)
 *   --seconds N     of each load (default: 10)
 *   --tiny          small models, small batches, short loads
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { miniLm, writeEncoderFolder } from "../test/support/encoder-folder.mjs";
import { machine, table } from "./lib/machine.mjs";

const { values: options } = parseArgs({
  options: {
    device: { type: "string", default: "auto" },
    python: { type: "string", default: "python3" },
    seconds: { type: "string" },
    tiny: { type: "boolean", default: false },
  },
});
const { device, python, tiny: isTiny } = options;
const seconds = options.seconds ?? (isTiny ? "0.3" : "10");
const sizes = isTiny ? [1, 2] : [1, 2, 4, 8, 16, 32, 64, 128, 256];
const shape = isTiny ? { layers: 1, width: 16, heads: 2, hidden: 32, vocabulary: 40, maxTokens: 16 } : miniLm;

const sheaf = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));
const beside = (name) => fileURLToPath(new URL(`gpu/${name}`, import.meta.url));
const environment = {
  ...process.env,
  INFERENCE_DEVICE: device,
  MAX_BATCH_SIZE: String(sizes.at(-1)),
  // `sheaf tune` takes the python3 of PATH.
  PATH: python.includes("/") ? `${dirname(python)}:${process.env.PATH}` : process.env.PATH,
  PYTHON: python,
  SHAPE: JSON.stringify(shape),
};

/** What a command of ours printed as JSON. @throws {Error} it failed, with its own words. */
function run(...words) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [sheaf, ...words, "--json"], {
    env: environment,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  // 3 says that batching gains nothing, 1 that it is not settled: both are results.
  if (!stdout.startsWith("{")) throw new Error(`sheaf ${words.join(" ")} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout);
}

const ms = (value) => Number(value.toPrecision(3));
const perS = (value) => Math.round(value).toLocaleString("en");

function measure(title, model, item) {
  console.log(`\n## ${title}\n`);
  const isPython = model.endsWith(".py");
  const tuned = run("tune", model, "--item", item, "--device", device, "--sizes", sizes.join(), "--max-time", `${4 * seconds}s`); // prettier-ignore
  if (tuned.note !== undefined) console.log(`${tuned.note}\n`);
  const { fixedMs, perItemMs } = tuned.costModel;
  console.log(`s(n) = ${ms(fixedMs)} ms + ${ms(perItemMs)} ms · n`);
  const cost = tuned.rows.map((row) => [row.size, ms(row.runMs), perS(row.itemsPerS)]);
  console.log(`\n${table([["items", "run ms", "items/s"], ...cost])}`);

  // Each start of PyTorch takes seconds: a trial has seen enough.
  if (isTiny && isPython) return;

  const bench = (...load) =>
    run("bench", model, "--compare", "unbatched,fifo,auto", "--duration", `${seconds}s`, "--warm-up", isTiny ? "0s" : "2s", "--payload", `{"input":${item}}`, ...load).results; // prettier-ignore
  const closed = bench("--pattern", "closed", "--callers", String(2 * sizes.at(-1)));
  const rate = Math.max(1, Math.round(0.5 * Math.max(...closed.map(({ achievedPerS }) => achievedPerS))));
  const open = bench("--pattern", "steady", "--rate", String(rate));
  console.log(`\nClosed: ${2 * sizes.at(-1)} callers. Open: ${perS(rate)} requests a second, half of the best.\n`);
  const head = ["policy", "closed, replies/s", "closed, p99 ms", "open, replies/s", "open, p99 ms"];
  const figures = (result) => [perS(result.achievedPerS), ms(result.latencyMs.p99)];
  const rows = closed.map((result, i) => [result.configuration, ...figures(result), ...figures(open[i])]);
  console.log(table([head, ...rows]));
  return tuned.note ?? "";
}

const folder = mkdtempSync(join(tmpdir(), "sheaf-gpu-"));
try {
  console.log(machine());
  const encoder = writeEncoderFolder(join(folder, "encoder"), shape);
  const [text, floats] = ["{{words 12}}", "{{floats 768}}"];
  const notes = [measure("An encoder", encoder, text), measure("mlp", "mlp", floats)];
  if (spawnSync(python, ["-c", "import torch, numpy"]).status === 0) {
    measure("The encoder in PyTorch", beside("encoder.py"), text);
    if (!isTiny) measure("mlp in PyTorch", beside("mlp.py"), floats);
  } else console.log(`\n${python} has no PyTorch with NumPy: not compared.`);
  if (notes.every((note) => !/^Runs on (?:webgpu|cuda)/u.test(note) || note.includes(" in software")))
    console.log("\nNot shown on a real GPU.");
} finally {
  rmSync(folder, { recursive: true });
}
