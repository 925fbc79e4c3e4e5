/**
 * `npm run bench -- passes [--rounds 5] [--lists 2] [--classes short,mixed,long] [--threads 2] [--out FOLDER]`: lists of 32
 * texts through one encoder of MiniLM's shape with seeded weights, without a server: one by one, in sorted runs of 2, 4, 8, 16
 * and 32, all together, and in passes cut by learned cost, in turn. Prints the time and the CPU time a text, medians of the
 * rounds, each way against the passes. Then the expected time of passes beside the measured one; FOLDER gets the picture.
 * About three minutes with the defaults on two cores.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chartSpec, logAxis, sizes } from "../packages/sheaf-server/dist/load/report/chart.js";
import { renderCharts } from "../packages/sheaf-server/dist/load/report/render.js";
import { readFolder } from "../packages/sheaf-server/dist/runners/text/folder-settings.js";
import { loadTextModel, runTexts, runTogether, warmUpTexts } from "../packages/sheaf-server/dist/runners/text/model.js";
import { seededRandom } from "../packages/sheaf/dist/internal/tuning.js";
import { miniLm, writeEncoderFolder } from "../test/support/encoder-folder.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { classes, drawTexts } from "./text/texts.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    lists: { type: "string", default: "2" },
    classes: { type: "string", default: Object.keys(classes).join() },
    threads: { type: "string", default: "2" },
    out: { type: "string" },
  },
});
const [rounds, lists, threads] = [values.rounds, values.lists, values.threads].map(Number);
if (![rounds, lists, threads].every((value) => Number.isInteger(value) && value >= 1 && value <= 100))
  fail("--rounds, --lists and --threads must be integers, 1 to 100");
const chosen = values.classes.split(",");
const unknown = chosen.find((name) => classes[name] === undefined);
if (unknown !== undefined) fail(`--classes must be of ${Object.keys(classes).join(", ")}, got ${unknown}`);

const listSize = 32;
const bySize = (size) => async (texts, model) => {
  const sorted = texts.toSorted((a, b) => a.length - b.length);
  for (let i = 0; i < sorted.length; i += size) await runTogether(sorted.slice(i, i + size), model);
};
const ways = {
  "one by one": bySize(1),
  ...Object.fromEntries([2, 4, 8, 16].map((size) => [`sorted, ${size} a run`, bySize(size)])),
  "all together": runTogether,
  "by learned cost": (texts, model) => runTexts(texts, model),
};
const own = Object.keys(ways).at(-1);

const folder = mkdtempSync(join(tmpdir(), "sheaf-passes-"));
try {
  const shape = { ...miniLm, maxTokens: 512 };
  const encoder = writeEncoderFolder(join(folder, "encoder"), shape);
  const model = await loadTextModel({
    folder: encoder,
    settings: readFolder(encoder),
    intraOpNumThreads: threads,
    maxBatchSize: 128,
  });
  console.log(`${machine()}, load average ${loadavg()[0].toFixed(1)}`);
  console.log(`npm run bench -- passes ${process.argv.slice(2).join(" ")}\n`);
  const startedAtMs = performance.now();
  await warmUpTexts(model);
  console.log(`The warm-up took ${(performance.now() - startedAtMs).toFixed(0)} ms.\n`);
  for (const name of chosen) console.log(`${name}\n${table(await compared(name, model))}\n`);
  const curve = await curveOf(model);
  console.log(table([["texts × tokens", "measured ms", "expected ms", "off"], ...curve.map(row)]));
  if (values.out !== undefined) writeFileSync(join(values.out, "curve.svg"), await pictureOf(curve));
  await model.session.release();
} finally {
  rmSync(folder, { recursive: true });
}

/** Each way on the same lists, in another order each round. */
async function compared(name, model) {
  const texts = drawTexts(name, seededRandom(2)).map(({ text }) => text);
  const found = new Map(Object.keys(ways).map((way) => [way, { ms: [], cpuMs: [] }]));
  for (let round = 0; round < rounds; round++) {
    const first = round % Object.keys(ways).length;
    const turns = Object.entries(ways);
    for (const [way, run] of [...turns.slice(first), ...turns.slice(0, first)]) {
      const [atMs, cpu] = [performance.now(), process.cpuUsage()];
      for (let list = 0; list < lists; list++) {
        const at = (round * lists + list) * listSize;
        await run(
          Array.from({ length: listSize }, (_, i) => texts[(at + i) % texts.length]),
          model,
        );
      }
      const { user, system } = process.cpuUsage(cpu);
      found.get(way).ms.push((performance.now() - atMs) / (lists * listSize));
      found.get(way).cpuMs.push((user + system) / 1000 / (lists * listSize));
    }
  }
  const ratio = (way, key) => median(found.get(way)[key].map((ms, round) => ms / found.get(own)[key][round]));
  return [
    ["way", "ms a text", "CPU ms a text", "ms ÷ by cost", "CPU ÷ by cost"],
    ...Object.keys(ways).map((way) => [
      way,
      ...["ms", "cpuMs"].map((key) => median(found.get(way)[key]).toFixed(2)),
      ...["ms", "cpuMs"].map((key) => ratio(way, key).toFixed(2)),
    ]),
  ];
}

/** Measured and expected times of passes, single texts and several, in turn. */
async function curveOf(model) {
  const shapes = [16, 32, 64, 128, 256, 500].map((length) => [1, length]);
  for (const [size, length] of [
    [4, 14],
    [8, 14],
    [16, 14],
    [32, 14],
    [64, 14],
    [8, 64],
    [32, 64],
    [2, 400],
    [8, 400],
  ])
    // prettier-ignore
    shapes.push([size, length]);
  const measured = new Map(shapes.map((shape) => [shape, []]));
  for (let round = 0; round < Math.max(3, rounds); round++)
    for (const shape of shapes) {
      const [size, length] = shape;
      const text = new Array(length - 2).fill("w1").join(" ");
      const startedAtMs = performance.now();
      await runTogether(new Array(size).fill(text), model);
      measured.get(shape).push(performance.now() - startedAtMs);
    }
  return shapes.map(([size, length]) => ({
    size,
    length,
    padded: size * length,
    ms: median([...measured].find(([shape]) => shape[0] === size && shape[1] === length)[1]),
    expectedMs: model.cost.of(size, length),
  }));
}

function row({ size, length, ms, expectedMs }) {
  return [`${size} × ${length}`, ms.toFixed(1), expectedMs.toFixed(1), `${(100 * (expectedMs / ms - 1)).toFixed(0)} %`];
}

async function pictureOf(curve) {
  const rows = curve.flatMap(({ size, padded, ms, expectedMs }) => [
    { texts: size === 1 ? "one text" : "several texts", kind: "measured", padded, ms },
    { texts: size === 1 ? "one text" : "several texts", kind: "expected", padded, ms: expectedMs },
  ]);
  const title = "Time of a pass, measured and expected";
  const axis = (field, name) => ({
    field,
    type: "quantitative",
    ...logAxis(
      rows.map((one) => one[field]),
      name,
    ),
  });
  const spec = (size) =>
    chartSpec(rows, size, {
      height: 320,
      mark: { type: "point", filled: true, size: 60 },
      encoding: {
        x: axis("padded", "Tokens of the pass, padding included (log scale)"),
        y: axis("ms", "Milliseconds (log scale)"),
        color: { field: "kind", type: "nominal", title: null },
        shape: { field: "texts", type: "nominal", title: null },
      },
    });
  const [picture] = await renderCharts([{ name: "curve", title, reading: "", spec }], sizes.wide);
  return picture;
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
