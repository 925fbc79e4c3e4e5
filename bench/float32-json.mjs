// `npm run bench -- float32-json`: our float32 JSON writer and parser against JSON.stringify and JSON.parse, in one process.
import { parseFloat32Json } from "../packages/sheaf-server/dist/server/codec/float32-json.js";
import { jsonBytes } from "../packages/sheaf-server/dist/server/codec/json-bytes.js";
import { machine, median, table } from "./lib/machine.mjs";

const rounds = 31;
const roundMs = 15;

/** Microseconds a call of each contender: rounds alternate, so that a slow moment of the machine hits all alike. */
function measure(contenders) {
  const names = Object.keys(contenders);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -3; round < rounds; round++) {
    for (const name of names) {
      const run = contenders[name];
      const start = performance.now();
      let calls = 0;
      do {
        for (let i = 0; i < 20; i++) run();
        calls += 20;
      } while (performance.now() - start < roundMs);
      if (round >= 0) times[name].push(((performance.now() - start) * 1000) / calls);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times[name])]));
}

const rows = [["what", "JSON µs", "ours µs", "ratio"]];
const row = (what, { json, ours }) =>
  rows.push([what, json.toFixed(1), ours.toFixed(1), `${(json / ours).toFixed(1)}×`]);

for (const count of [384, 512, 768]) {
  const values = Float32Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898) * 0.1);
  row(
    `${count} float32 out`,
    measure({ json: () => JSON.stringify(Array.from(values)), ours: () => jsonBytes([values]) }),
  );

  const target = new Float32Array(count);
  const texts = {
    "17 digits": JSON.stringify(Array.from(values, (_, i) => Math.sin(i * 12.9898) * 0.1)),
    "9 digits": jsonBytes([values]).toString(),
    "3 digits": JSON.stringify(Array.from({ length: count }, (_, i) => ((i * 7919) % 1000) / 1000)),
  };
  for (const [digits, text] of Object.entries(texts)) {
    const body = Buffer.from(text);
    const json = () => {
      const parsed = JSON.parse(body.toString("utf8"));
      for (let i = 0; i < parsed.length; i++) {
        if (typeof parsed[i] !== "number" || !Number.isFinite(parsed[i])) throw new Error("not a finite number");
        target[i] = parsed[i];
      }
    };
    row(`${count} floats in, ${digits}`, measure({ json, ours: () => parseFloat32Json(body, 0, target) }));
  }
}
console.log(machine());
console.log("npm run bench -- float32-json");
console.log(
  `Median of ${rounds} alternating rounds; in: parsed, every number checked to be finite, as a Float32Array.\n`,
);
console.log(table(rows));
