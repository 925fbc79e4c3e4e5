/**
 * `npm run bench -- worker-round-trip [thread|process] [--own]`: one batch to a worker and back, beside the floor: as many
 * bytes, copied once, transferred (thread) or written to a pipe (process), and the same for the reply.
 *
 * Most of a round trip is the kernel waking a thread, which another program's next burst can double. So ours and the floor
 * take turns in slices of a few hundredths of a second; each pair of neighbouring slices gives one ratio of medians, and
 * the median of those ratios is what counts. About a minute and a half.
 */
import { spawn } from "node:child_process";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { workerProcess, workerThread } from "sheaf/node";
import { machine, median, table } from "./lib/machine.mjs";

const echoUrl = new URL("./worker-echo-worker.mjs", import.meta.url);
const floorUrl = new URL("./worker-floor-worker.mjs", import.meta.url);
const imageBytes = 600 * 1024;
const vectorLength = 768;
const pairs = 41;
const sliceMs = 20;
/** Of each slice, not counted: the other side's turn has left caches and threads cold. */
const unmeasured = 2;
const fewestRounds = 3;

const payloads = {
  strings: {
    items: (n) =>
      Array.from(
        { length: n },
        (_, i) => `Item ${i}: a sentence of some eighty characters, as an embedding model may get.`,
      ),
    bytes: (items) => Buffer.byteLength(items.join("")),
    replyBytes: (items) => Buffer.byteLength(items.join("")),
  },
  vectors: {
    items: (n) => Array.from({ length: n }, (_, i) => new Float32Array(vectorLength).fill(i)),
    bytes: (items) => items.length * vectorLength * 4,
    replyBytes: (items) => items.length * vectorLength * 4,
  },
  images: {
    items: (n) => Array.from({ length: n }, (_, i) => new Uint8Array(imageBytes).fill(i)),
    bytes: (items) => items.length * imageBytes,
    replyBytes: (items) => items.length * 8,
  },
};

const kinds = {
  thread: { open: workerThread, floor: threadFloor },
  process: { open: workerProcess, floor: processFloor },
};
const resultRows = process.argv.includes("--own") ? "own" : "view";

const rows = [["worker", "payload", "batch", "ours µs", "floor µs", "ours ÷ floor", "quartiles"]];
let worst = 0;
for (const [kind, { open, floor }] of Object.entries(kinds)) {
  if (process.argv.some((word) => word in kinds) && !process.argv.includes(kind)) continue;
  const executor = open(echoUrl, { niceness: 0, resultRows });
  await executor.ready();
  const bare = floor();
  for (const [name, payload] of Object.entries(payloads)) {
    for (const n of [1, 8, 32, 128]) {
      const { ours, base, ratios } = await compare(executor, bare, payload, n);
      const ratio = median(ratios);
      worst = Math.max(worst, ratio);
      const quartiles = [0.25, 0.75].map((share) => ratios[Math.floor(ratios.length * share)].toFixed(2)).join("–");
      rows.push([kind, name, n, median(ours).toFixed(0), median(base).toFixed(0), ratio.toFixed(2), quartiles]);
    }
  }
  await executor.close();
  bare.close();
}
console.log(machine());
console.log(`npm run bench -- worker-round-trip ${process.argv.slice(2).join(" ")}`);
console.log(
  `Medians of ${pairs} pairs of slices of ${sliceMs} ms; resultRows: "${resultRows}"; load ${loadavg()[0].toFixed(1)}\n`,
);
console.log(table(rows));
console.log(`\nworst ${worst.toFixed(2)} × the floor`);

/** Medians of each slice, and the ratios of neighbours, sorted. */
async function compare(executor, bare, { items: make, bytes, replyBytes }, n) {
  const items = make(n);
  const source = Buffer.alloc(bytes(items), 1);
  const reply = replyBytes(items);
  const { signal } = new AbortController();
  const runs = [
    () => executor.run(items, { signal, batchId: 1, size: n, attempt: 1 }),
    () => bare.roundTrip(source, reply),
  ];
  for (const run of runs) await slice(run);
  const times = [[], []];
  const ratios = [];
  for (let pair = 0; pair < pairs; pair++) {
    // Who goes first changes, so that a drift of the machine's speed favours neither.
    for (const side of pair % 2 === 0 ? [0, 1] : [1, 0]) times[side].push(await slice(runs[side]));
    ratios.push(times[0].at(-1) / times[1].at(-1));
  }
  return { ours: times[0], base: times[1], ratios: ratios.toSorted((a, b) => a - b) };
}

/** Median microseconds of one round trip after another. */
async function slice(run) {
  for (let i = 0; i < unmeasured; i++) await run();
  const times = [];
  const endAtMs = performance.now() + sliceMs;
  while (times.length < fewestRounds || performance.now() < endAtMs) {
    const startedAtMs = performance.now();
    await run();
    times.push((performance.now() - startedAtMs) * 1000);
  }
  return median(times);
}

function threadFloor() {
  const worker = new Worker(floorUrl);
  let done;
  worker.on("message", () => done());
  return {
    roundTrip: (source, replyBytes) =>
      new Promise((resolve) => {
        done = resolve;
        const copy = Buffer.allocUnsafeSlow(source.byteLength);
        copy.set(source);
        worker.postMessage({ replyBytes, buffer: copy.buffer }, [copy.buffer]);
      }),
    close: () => worker.terminate(),
  };
}

function processFloor() {
  const child = spawn(process.execPath, [fileURLToPath(floorUrl)], { stdio: ["ignore", "inherit", "inherit", "pipe"] });
  const pipe = child.stdio[3];
  let missing = 0;
  let done;
  pipe.on("data", (chunk) => {
    missing -= chunk.length;
    if (missing === 0) done();
  });
  return {
    roundTrip: (source, replyBytes) =>
      new Promise((resolve) => {
        done = resolve;
        missing = replyBytes;
        const copy = Buffer.allocUnsafeSlow(source.byteLength);
        copy.set(source);
        const head = Buffer.alloc(16);
        head.writeDoubleLE(source.byteLength, 0);
        head.writeDoubleLE(replyBytes, 8);
        pipe.cork();
        pipe.write(head);
        pipe.write(copy);
        pipe.uncork();
      }),
    close: () => pipe.end(),
  };
}
