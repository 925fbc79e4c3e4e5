/**
 * `npm run bench -- start [--rounds 3] [--mb 100]`: from the start of `sheaf serve` to the first 200 of /livez and of
 * /readyz, for a built-in model, a worker module and an `.onnx` file of `--mb` megabytes, which is looked into before it is
 * served. Half a minute.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { OnnxGraph } from "../packages/sheaf-server/dist/runners/onnx/writer.js";
import { machine, median, table } from "./lib/machine.mjs";

const { values: flags } = parseArgs({
  options: { rounds: { type: "string", default: "3" }, mb: { type: "string", default: "100" } },
});
const rounds = Number(flags.rounds);
const megabytes = Number(flags.mb);
const pollMs = 5;
const givenUpMs = 60_000;
const entry = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "sheaf-start-"));
const models = {
  mlp: "mlp",
  "use-lite": "use-lite",
  module: join(folder, "module.mjs"),
  onnx: join(folder, "big.onnx"),
};
writeFileSync(models.module, "export default { run: (items) => items };");
writeFileSync(models.onnx, dense(Math.round(Math.sqrt((megabytes * 1024 * 1024) / 4))));

const rows = [["model", "/livez ms", "/readyz ms"]];
try {
  const times = Object.keys(models).map(() => ({ live: [], ready: [] }));
  for (let round = 0; round < rounds; round++) {
    for (const [i, model] of Object.values(models).entries()) {
      const { live, ready } = await start(model);
      times[i].live.push(live);
      times[i].ready.push(ready);
    }
  }
  Object.keys(models).forEach((name, i) => {
    const shown = name === "onnx" ? `.onnx of ${megabytes} MB` : name;
    rows.push([shown, median(times[i].live).toFixed(0), median(times[i].ready).toFixed(0)]);
  });
} finally {
  rmSync(folder, { recursive: true });
}
console.log(machine());
console.log(`npm run bench -- start --rounds ${rounds} --mb ${megabytes} (load average: ${loadavg()[0].toFixed(1)})\n`);
console.log(table(rows));

async function start(model) {
  const port = await freePort();
  const startedAtMs = performance.now();
  const child = spawn(process.execPath, [entry, "serve", model, "--port", String(port), "--log-level", "error"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    const live = await answered(`http://127.0.0.1:${port}/livez`, startedAtMs);
    const ready = await answered(`http://127.0.0.1:${port}/readyz`, startedAtMs);
    return { live, ready };
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
}

async function answered(url, startedAtMs) {
  for (;;) {
    const isOk = await fetch(url).then(
      ({ status }) => status === 200,
      () => false,
    );
    const ms = performance.now() - startedAtMs;
    if (isOk) return ms;
    if (ms > givenUpMs) throw new Error(`${url} was not 200 within ${givenUpMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** A dense layer of `width` × `width` float32. */
function dense(width) {
  const graph = new OnnxGraph();
  graph.constant("kernel", "float", [width, width], new Float32Array(width * width).fill(1 / width));
  graph.rename(graph.node("MatMul", ["x", "kernel"]), "y");
  const axes = ["batch", width];
  return graph.model({
    inputs: [{ name: "x", type: "float", axes }],
    outputs: [{ name: "y", type: "float", axes }],
  });
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
