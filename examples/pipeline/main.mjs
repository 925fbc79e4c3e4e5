// The classic pipeline: 880 items, at most 200 in a batch, through a stage before, a worker process and a stage after.
// One caller after the other against all at once, with a window of 100 ms and with the default policy.
// `node main.mjs` takes about 100 s, as the window makes each lone caller wait 100 ms; `node main.mjs 40` is quick.
import { createBatcher, fixedWindow } from "sheaf";
import { pipeline, workerProcess } from "sheaf/node";

const count = Number(process.argv[2] ?? 880);
if (!(Number.isInteger(count) && count >= 1 && count <= 880)) {
  throw new RangeError(`the number of items must be an integer, 1 to 880, got ${process.argv[2]}`);
}
const items = Array.from({ length: count }, (_, i) => i);

const square = (options) =>
  createBatcher(
    pipeline({
      before: (texts) => texts.map(Number),
      executor: workerProcess(new URL("./worker.mjs", import.meta.url)),
      after: (squares) => squares.map(String),
    }),
    { maxBatchSize: 200, ...options },
  );

const sequential = async (call) => {
  for (const item of items) check(item, await call(String(item)));
};
const batched = async (call) => {
  const results = await Promise.all(items.map((item) => call(String(item))));
  results.forEach((result, i) => check(items[i], result));
};

const windowed = await times({ policy: fixedWindow(), maxWaitMs: 100 });
const auto = await times({});
console.log(`window of 100 ms  sequential ${show(windowed.sequentialMs)}   batched ${show(windowed.batchedMs)}`);
console.log(`auto              sequential ${show(auto.sequentialMs)}   batched ${show(auto.batchedMs)}`);
console.log(`window: batched is ${ratio(windowed.sequentialMs, windowed.batchedMs)} × faster than sequential`);
console.log(`auto:   batched is ${ratio(auto.sequentialMs, auto.batchedMs)} × faster than sequential`);
console.log(`one after the other, auto is ${ratio(windowed.sequentialMs, auto.sequentialMs)} × faster than the window`);

async function times(options) {
  const call = square(options);
  await call.ready();
  const batchedMs = await timed(() => batched(call));
  const sequentialMs = await timed(() => sequential(call));
  await call.close();
  return { batchedMs, sequentialMs };
}

async function timed(run) {
  const startedAtMs = performance.now();
  await run();
  return performance.now() - startedAtMs;
}

function check(item, result) {
  if (result !== String(item * item)) throw new Error(`${item} squared is not ${result}`);
}

function show(ms) {
  return `${ms.toFixed(0).padStart(6)} ms`;
}

function ratio(slow, fast) {
  return (slow / fast).toFixed(1);
}
