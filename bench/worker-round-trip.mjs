// npm run bench -- worker-round-trip [thread|process] [--own]
// One batch to a worker and back, beside the floor: as many bytes, copied once, transferred (thread) or written to a
// pipe (process), and the same for the reply. Ours and the floor take turns, so that what else runs here hits both.
import { spawn } from "node:child_process";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { workerProcess, workerThread } from "sheaf/node";

const echoUrl = new URL("./worker-echo-worker.mjs", import.meta.url);
const floorUrl = new URL("./worker-floor-worker.mjs", import.meta.url);
const imageBytes = 600 * 1024;
const vectorLength = 768;
const seconds = 1.5;
const maxRounds = 2000;

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

console.log(`${cpus()[0].model} × ${cpus().length}, Node ${process.version}, ${process.platform}`);
console.log(`npm run bench -- worker-round-trip ${process.argv.slice(2).join(" ")}`);
console.log(`median µs of one round trip; resultRows: "${resultRows}"\n`);
console.log("worker   payload  batch      ours     floor  ours/floor");
let worst = 0;
for (const [kind, { open, floor }] of Object.entries(kinds)) {
  if (process.argv.some((word) => word in kinds) && !process.argv.includes(kind)) continue;
  const executor = open(echoUrl, { niceness: 0, resultRows });
  await executor.ready();
  const bare = floor();
  for (const [name, payload] of Object.entries(payloads)) {
    for (const n of [1, 8, 32, 128]) {
      const [ours, base] = await compare(executor, bare, payload, n);
      const ratio = ours / base;
      worst = Math.max(worst, ratio);
      console.log(
        `${kind.padEnd(8)} ${name.padEnd(8)} ${String(n).padStart(5)} ${ours.toFixed(0).padStart(9)} ${base.toFixed(0).padStart(9)} ${ratio.toFixed(2).padStart(11)}`,
      );
    }
  }
  await executor.close();
  bare.close();
}
console.log(`\nworst ${worst.toFixed(2)} × the floor`);

async function compare(executor, bare, { items: make, bytes, replyBytes }, n) {
  const items = make(n);
  const source = Buffer.alloc(bytes(items), 1);
  const reply = replyBytes(items);
  const { signal } = new AbortController();
  const ours = () => executor.run(items, { signal, batchId: 1, size: n, attempt: 1 });
  const floor = () => bare.roundTrip(source, reply);
  for (let i = 0; i < 20; i++) {
    await ours();
    await floor();
  }
  const times = [[], []];
  const endAt = performance.now() + seconds * 1000;
  for (let i = 0; i < maxRounds && (i < 5 || performance.now() < endAt); i++) {
    times[0].push(await timed(ours));
    times[1].push(await timed(floor));
  }
  return times.map(median);
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

async function timed(run) {
  const startedAt = performance.now();
  await run();
  return (performance.now() - startedAt) * 1000;
}

function median(numbers) {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1];
}
