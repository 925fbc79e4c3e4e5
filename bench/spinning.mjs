/**
 * `npm run bench -- spinning [--rounds 5] [--seconds 0.5] [--gap 3] [--neighbours 0]`: runs of one encoder of MiniLM's shape
 * on two threads, which sleep at once when they have nothing to do within a run, or spin before: for 10, 20 or 50 µs, or as
 * long as ONNX Runtime does by itself. Each has a process of its own, in turn; GAP ms pass between two runs, and NEIGHBOURS
 * busy processes share the cores. Prints the time and the CPU time of a run, medians of the rounds. A minute with the defaults.
 */
import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { InferenceSession, Tensor } from "../packages/sheaf-server/dist/runners/onnx/runtime.js";
import { miniLm, writeEncoderFolder } from "../test/support/encoder-folder.mjs";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: Object.fromEntries(
    Object.entries({ rounds: "5", seconds: "0.5", gap: "3", neighbours: "0" }).map(([name, text]) => [
      name,
      { type: "string", default: text },
    ]),
  ),
});
const [rounds, seconds, gapMs, neighbours] = Object.values(values).map(Number);
const ways = {
  "sleep at once": { allow_spinning: "0" },
  ...Object.fromEntries([10, 20, 50].map((us) => [`spin ${us} µs`, { spin_duration_us: String(us) }])),
  "spin as by default": {},
};
/** Texts × tokens. */
const shapes = [
  [1, 14],
  [1, 64],
  [1, 425],
  [16, 14],
];

if (process.send === undefined) await compare();
else process.once("message", async (job) => process.send(await measure(job), () => process.disconnect()));

async function compare() {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-spinning-"));
  const file = new URL(import.meta.url).pathname;
  const busy = Array.from({ length: neighbours }, () => fork(file, { execArgv: ["-e", "for (;;);"] }));
  const found = Object.keys(ways).map(() => shapes.map(() => ({ ms: [], cpuMs: [] })));
  try {
    const encoder = writeEncoderFolder(join(folder, "encoder"), { ...miniLm, maxTokens: 512 });
    for (let round = 0; round < rounds; round++)
      for (let turn = 0; turn < found.length; turn++) {
        const way = (round + turn) % found.length;
        const job = { model: join(encoder, "model.onnx"), intraOp: Object.values(ways)[way] };
        (await answerOf(fork(file, process.argv.slice(2)), job)).forEach(({ ms, cpuMs }, shape) => {
          found[way][shape].ms.push(ms);
          found[way][shape].cpuMs.push(cpuMs);
        });
      }
  } finally {
    for (const child of busy) child.kill();
    rmSync(folder, { recursive: true });
  }
  console.log(`${machine()}, load average ${loadavg()[0].toFixed(1)}`);
  console.log(`npm run bench -- spinning ${process.argv.slice(2).join(" ")}\n`);
  const cells = (way) => found[way].map(({ ms, cpuMs }) => `${median(ms).toFixed(2)} · ${median(cpuMs).toFixed(2)}`);
  const head = ["ms · CPU ms a run", ...shapes.map((shape) => shape.join(" × "))];
  console.log(table([head, ...Object.keys(ways).map((name, way) => [name, ...cells(way)])]));
}

async function answerOf(child, job) {
  return new Promise((resolve, reject) => {
    child.once("message", resolve).once("error", reject);
    child.once("exit", (code) => reject(new Error(`a measuring process ended with ${code}`)));
    child.send(job);
  });
}

/** The median time of a run, and the CPU time that all take, by shape. */
async function measure({ model, intraOp }) {
  const session = await InferenceSession.create(model, {
    intraOpNumThreads: 2,
    extra: { session: { intra_op: intraOp } },
  });
  const results = [];
  for (const shape of shapes) {
    const ones = () => new Tensor("int64", new BigInt64Array(shape[0] * shape[1]).fill(1n), shape);
    const feeds = Object.fromEntries(session.inputNames.map((name) => [name, ones()]));
    for (let i = 0; i < 3; i++) await session.run(feeds);
    const times = [];
    const cpu = process.cpuUsage();
    for (const endMs = performance.now() + 1000 * seconds; performance.now() < endMs; await sleep(gapMs)) {
      const startedAtMs = performance.now();
      await session.run(feeds);
      times.push(performance.now() - startedAtMs);
    }
    const { user, system } = process.cpuUsage(cpu);
    results.push({ ms: median(times), cpuMs: (user + system) / 1000 / times.length });
  }
  return results;
}
