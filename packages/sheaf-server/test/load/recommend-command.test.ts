import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fixedWindow } from "sheaf";
import { simulateRecorded } from "sheaf/internal/tuning";
import { recommend } from "../../dist/cli/recommend.js";
import { collected } from "./streams.js";

const folder = mkdtempSync(join(tmpdir(), "sheaf-recommend-"));
process.on("exit", () => rmSync(folder, { recursive: true }));

async function run(...args: string[]) {
  const streams = collected();
  const code = await recommend(args, streams);
  return { code, out: streams.out(), err: streams.err() };
}

const record = join(folder, "record.jsonl");
const window: string[] = [];
await simulateRecorded(
  {
    cost: { fixedMs: 10, perItemMs: 0.5 },
    concurrency: 1,
    policy: fixedWindow(),
    maxWaitMs: 40,
    arrivals: { pattern: "poisson", ratePerS: 300 },
    items: 30_000,
  },
  (line) => window.push(line),
);
writeFileSync(record, window.join("\n"));

test("it recommends from a record, on threads, and writes the settings into a config file", async () => {
  const config = join(folder, "sheaf.config.json");
  writeFileSync(config, '{ "port": 9000, "maxWaitMs": 40 }');
  const { code, out, err } = await run(record, "--write-config", config);
  assert.equal(code, 0, err);
  assert.match(out, /^ +mean ms +p50 ms +p95 ms +p99 ms +calls\/s +mean batch +lost\nrecorded /);
  assert.match(out, /\nChange:\n(  [A-Z_]+: .+ → .+\n)+Because: p99 .* → .*, \d+ % less\.\nFrom 30,000 calls in /);
  assert.match(err, /Wrote .*sheaf\.config\.json/);
  const written = JSON.parse(readFileSync(config, "utf8")) as Record<string, unknown>;
  assert.equal(written["port"], 9000);
  const changed = [...out.matchAll(/^  ([A-Z_]+): .+ → (.+)$/gm)];
  for (const [, name, value] of changed) {
    const setting = name!.toLowerCase().replaceAll(/_./g, (at) => at[1]!.toUpperCase());
    assert.equal(String(written[setting] ?? "none"), value);
  }
  const again = await run(record, "--json");
  assert.equal((JSON.parse(again.out) as { verdict: string }).verdict, "change");
});

test("change nothing ends with 3 and leaves the config file alone", async () => {
  const config = join(folder, "none.json");
  const { code, out, err } = await run(record, "--slo", "p99=10s", "--write-config", config);
  assert.deepEqual([code, /Change nothing: they meet the objective\./.test(out)], [3, true], out + err);
  assert.throws(() => readFileSync(config));
});

test("a record of several models needs --model; too little of one ends with 1 and what is missing", async () => {
  const two = join(folder, "two.jsonl");
  writeFileSync(two, [...window, ...window.slice(0, 12).map((line) => line.replaceAll("batcher", "other"))].join("\n"));
  const unnamed = await run(two);
  assert.deepEqual(
    [unnamed.code, /models batcher, other: name one with --model/.test(unnamed.err)],
    [2, true],
    unnamed.err,
  );
  const few = await run(two, "--model", "other");
  assert.deepEqual([few.code, /says too little: it has \d+ runs that ended well/.test(few.err)], [1, true], few.err);
});

test("a wrong command line ends with 2 and names what is wrong", async () => {
  const bad = join(folder, "bad.jsonl");
  writeFileSync(bad, "3\n");
  const empty = join(folder, "empty.jsonl");
  writeFileSync(empty, "\n");
  const cases: [string[], RegExp, number][] = [
    [[], /missing required argument 'file'/, 1],
    [["/nowhere"], /\/nowhere cannot be read: ENOENT/, 2],
    [[record, bad], /line 1 of .*bad\.jsonl is neither of a record/, 2],
    [[empty], /has no calls/, 1],
    [[record, "--model", "other"], /no calls of other; it has batcher/, 2],
    [[record, "--slo", "p90=5ms"], /such as p99=50ms/, 2],
    [[record, "--slo", "p99=0s"], /must be above 0/, 2],
    [[record, "--speed", "0"], /must be a number from 0\.01/, 2],
    [[record, "--write-config", "a.yaml"], /writes JSON/, 2],
  ];
  for (const [args, message, expected] of cases) {
    const { code, err } = await run(...args);
    assert.match(err, message);
    if (args.length > 0) assert.equal(code, expected, err);
  }
});
