/**
 * What it costs to look: `npm run bench -- observation [--seconds N]`. CPU of a call with an observer over a call of the
 * same batcher without one, in waves of 1000 calls, with batches of 32 and of 1. Every observer takes its turn in every
 * round; the difference to the round's own bare batcher is taken, and the median over the rounds. Default 90 s.
 * Target: Prometheus and a subscriber together cost at most 60 ns a call in batches of 32.
 */
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { createBatcher, greedy } from "sheaf";
import { openTelemetry, prometheusMetrics } from "sheaf/metrics";
import { publishBatches } from "sheaf/node";
import { Ticks } from "../packages/sheaf-server/dist/dashboard/ticks.js";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "90" } } });
const seconds = Number(values.seconds);
if (!(seconds > 0)) throw new RangeError(`--seconds must be a number > 0, got ${values.seconds}`);
const targetNs = 60;
const callsAWave = 1000;

const ofSheaf = createRequire(new URL("../packages/sheaf/package.json", import.meta.url));
const { context, trace } = ofSheaf("@opentelemetry/api");
const { AsyncLocalStorageContextManager } = ofSheaf("@opentelemetry/context-async-hooks");
const { BasicTracerProvider, NoopSpanProcessor } = ofSheaf("@opentelemetry/sdk-trace-base");
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const tracing = new BasicTracerProvider({ spanProcessors: [new NoopSpanProcessor()] });
const tracer = tracing.getTracer("bench");
const api = { getTracer: (name) => tracing.getTracer(name), getActiveSpan: () => trace.getActiveSpan() };

/** Each makes of a bare batcher what callers call. */
const observers = {
  none: (batcher) => batcher,
  "a subscriber": (batcher) => {
    let items = 0;
    batcher.subscribe(({ size }) => (items += size));
    return batcher;
  },
  "Prometheus and a subscriber": (batcher) => {
    prometheusMetrics([batcher]);
    let items = 0;
    batcher.subscribe(({ size }) => (items += size));
    return batcher;
  },
  "diagnostics channel, nobody listens": (batcher) => {
    publishBatches(batcher);
    return batcher;
  },
  "the live page": (batcher) => {
    const state = () => ({ status: "ok", batchers: {} });
    const ticks = new Ticks([{ ...batcher, name: batcher.name, maxBatchSize: 32 }], state, console.error);
    process.once("exit", () => ticks.close());
    return batcher;
  },
  "none, but a span for each call": (batcher) => batcher,
  "OpenTelemetry, calls without a span": (batcher) => openTelemetry(batcher, { trace: api }),
  "OpenTelemetry, one span for all calls": (batcher) => openTelemetry(batcher, { trace: api }),
  "OpenTelemetry, a span for each call": (batcher) => openTelemetry(batcher, { trace: api }),
};

function makeWave(name, maxBatchSize) {
  const batcher = createBatcher((items) => items, { maxBatchSize, maxQueueSize: Infinity, policy: greedy() });
  const call = observers[name](batcher);
  const promises = new Array(callsAWave);
  const all = async (callOne) => {
    for (let item = 0; item < callsAWave; item++) promises[item] = callOne(item);
    await Promise.all(promises);
  };
  if (name.endsWith("one span for all calls"))
    return () => tracer.startActiveSpan("callers", async (span) => (await all(call), span.end()));
  // Making the spans is the caller's; the row without an observer shows what that costs.
  if (name.endsWith("a span for each call"))
    return () =>
      all((item) =>
        tracer.startActiveSpan("caller", (span) => {
          const result = call(item);
          void result.then(() => span.end());
          return result;
        }),
      );
  return () => all(call);
}

/** CPU nanoseconds of a call, garbage collection included. */
async function cpuNs(wave, atLeastMs) {
  const before = process.cpuUsage();
  let waves = 0;
  let spentUs = 0;
  do {
    await wave();
    waves++;
    const { user, system } = process.cpuUsage(before);
    spentUs = user + system;
  } while (spentUs < atLeastMs * 1000);
  return (spentUs * 1000) / (waves * callsAWave);
}

console.log(`${machine()}: npm run bench -- observation --seconds ${seconds}`);
let met = true;
for (const maxBatchSize of [32, 1]) {
  const waves = Object.keys(observers).map((name) => [name, makeWave(name, maxBatchSize)]);
  const sampleMs = 60;
  for (const [, wave] of waves) await cpuNs(wave, Math.min(600, (seconds * 1000) / 60));
  const rounds = Math.max(3, Math.floor((seconds * 1000 * 0.35) / (sampleMs * waves.length)));
  const samples = new Map(waves.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const [name, wave] of waves) samples.get(name).push(await cpuNs(wave, sampleMs));
  const bare = samples.get("none");
  const rows = [["observer", "ns a call", "over none"]];
  for (const [name, measured] of samples) {
    const over = median(measured.map((ns, round) => ns - bare[round]));
    rows.push([name, median(measured).toFixed(0), name === "none" ? "" : over.toFixed(0)]);
    if (maxBatchSize === 32 && name === "Prometheus and a subscriber") met = over <= targetNs;
  }
  console.log(`\nBatches of ${maxBatchSize}, ${rounds} rounds\n${table(rows)}`);
}
console.log(`\nPrometheus and a subscriber: at most ${targetNs} ns a call over none: ${met ? "met" : "NOT met"}`);
process.exit(met ? 0 : 1);
