import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { manualClock } from "sheaf/testing";
import { readRecords, type Recording } from "sheaf/internal/tuning";
import { bench } from "../../dist/cli/bench.js";
import { runLoad } from "../../dist/load/generator.js";
import { replayOf } from "../../dist/load/http/replay.js";
import type { LoadResult } from "../../dist/load/result.js";
import { temporaryFolder } from "../folder.js";
import { measuringTexts, serving } from "../server/serving.js";
import { running } from "./streams.js";

const run = running(bench);

const recorded = async (path: string): Promise<Map<string, Recording>> =>
  readRecords([readFileSync(path, "utf8").split("\n")]);

const words = (count: number): string => Array.from({ length: count }, () => "word").join(" ");

const weighed = (name: string) => ({ ...measuringTexts(name), weigh: (text: string) => text.split(" ").length });

test("a record is replayed: as many requests, in order, with their lengths, lanes and deadlines", async (t) => {
  const folder = temporaryFolder(t);
  const calls = [
    ["immediate", 3, 25_000],
    ["bulk", 90, 7000],
    ["interactive", 1, 9000],
    ["bulk", 12, 25_000],
    ["immediate", 40, 8000],
  ] as const;
  const [first, second] = [join(folder, "first.jsonl"), join(folder, "second.jsonl")];
  const server = await serving(t, [weighed("texts"), weighed("other")], { recordFile: first });
  for (const [priority, length, timeoutMs] of calls) {
    const headers = { "x-sheaf-priority": priority, "x-request-timeout-ms": String(timeoutMs) };
    assert.equal((await server.post("/infer/texts", { input: words(length) }, headers)).status, 200);
  }
  assert.equal((await server.post("/infer/other", { input: words(7) })).status, 200);
  await server.close();

  // A call without a deadline of its own gets that of the server.
  const again = await serving(t, [weighed("texts")], { recordFile: second, requestTimeoutMs: 20_000 });
  // One connection keeps the order.
  const flags = ["--trace", first, "--model", "texts", "--speed", "2", "--connections", "1", "--json"];
  const { code, out, err } = await run(`${again.url}/infer/texts`, ...flags);
  assert.equal(code, 0, err);
  const [result] = (JSON.parse(out) as { results: LoadResult[] }).results;
  assert.deepEqual([result!.pattern, result!.requests, result!.ok], ["trace", calls.length, calls.length]);
  await again.close();
  const replayed = (await recorded(second)).get("texts")!.calls;
  const lanes = { immediate: 0, interactive: 1, bulk: 2 };
  // The first request only asks whether the address answers.
  assert.deepEqual(
    [...replayed.weight.subarray(1)].map((weight, i) => [replayed.lane[i + 1], weight, replayed.timeoutMs[i + 1]]),
    calls.map(([priority, length, timeoutMs]) => [lanes[priority], length, Math.min(timeoutMs, 20_000)]),
  );
});

test("requests leave at the recorded moments divided by the speed, and every one counts", async () => {
  const timestamps = [5000, 5000, 5400, 15_000, 5030];
  const lines = timestamps.map((timestamp) => JSON.stringify({ timestamp, input_length: timestamp / 10 }));
  const { arrivalsMs, durationMs, lengths } = replayOf((await readRecords([lines])).get("trace")!, 2);
  assert.deepEqual([...lengths!], [500, 500, 503, 540, 1500]);
  const clock = manualClock();
  const sentAtMs: number[] = [];
  const target = {
    waited: 0,
    close: () => undefined,
    send(_: number, done: (end: { status: number }) => void) {
      sentAtMs.push(clock.now());
      return clock.after(1, () => done({ status: 200 }));
    },
  };
  const result = runLoad({ configuration: "test", clock, pattern: "trace", target, arrivalsMs, durationMs });
  clock.advance(10_000);
  assert.deepEqual(sentAtMs, [0, 0, 15, 200, 5000]);
  assert.equal((await result).requests, timestamps.length);
});

test("calls that joined no run are replayed too, with the payload's own length where no weight is known", async () => {
  const second = { sheaf: 1, model: "a", origin: 0, since: 0, at: 1_000_000, settings: {}, refused: 1, refusedBulk: 1 };
  const replay = replayOf((await readRecords([[JSON.stringify(second)]])).get("a")!, 1);
  assert.equal(replay.lengths, undefined);
  assert.deepEqual([...replay.arrivalsMs], [0, 500]);
  assert.deepEqual([0, 1].map(replay.headerAt).map(String), ["", "x-sheaf-priority: bulk\r\n"]);
});

test("bodies without words keep their own length, and GET sends none", async (t) => {
  const trace = join(temporaryFolder(t), "trace.jsonl");
  writeFileSync(trace, '{"timestamp": 0, "input_length": 9}\n{"timestamp": 3, "input_length": 2000}\n');
  const { url } = await serving(t, [measuringTexts("texts")]);
  const plain = join(temporaryFolder(t), "plain.jsonl");
  writeFileSync(plain, '{"timestamp": 0}\n{"timestamp": 3}\n');
  for (const [path, file, ...flags] of [
    ["/infer", trace, "--payload", '{"input": "{{int 9}}"}'],
    ["/infer", plain, "--lengths", "4,8"],
    ["/v1/models", trace, "--method", "GET"],
  ]) {
    const { code, out, err } = await run(url + path!, ...flags, "--trace", file!, "--json");
    assert.equal(code, 0, err);
    assert.equal((JSON.parse(out) as { results: LoadResult[] }).results[0]!.ok, 2);
  }
});

test("a wrong file, and an option that the record replaces, end with one message", async (t) => {
  const folder = temporaryFolder(t);
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const good = file("good.jsonl", '{"timestamp": 0}\n');
  const two = file("two.jsonl", '{"timestamp": 0, "model": "a"}\n{"timestamp": 0, "model": "b"}\n');
  const cases: [string[], number, RegExp][] = [
    [["--trace", join(folder, "none")], 2, /none cannot be read: ENOENT/],
    [["--trace", file("bad.jsonl", "3\n")], 2, /line 1 of .*bad\.jsonl is neither of a record/],
    [["--trace", file("empty.jsonl", "\n")], 1, /empty\.jsonl has no calls/],
    [["--trace", two], 2, /models a, b: name one with --model/],
    [["--trace", two, "--model", "c"], 2, /no calls of c; it has a, b/],
    [["--speed", "2"], 2, /--speed needs --trace/],
    [["--model", "a"], 2, /--model needs --trace/],
    [
      ["--trace", file("long.jsonl", '{"timestamp": 0, "input_length": 5}'), "--lengths", "4,8"],
      2,
      /--lengths is for a/,
    ],
    ...[
      ["--pattern", "steady"],
      ["--rate", "5"],
      ["--callers", "2"],
      ["--duration", "5s"],
      ["--warm-up", "0s"],
      ["--tenants", "2"],
      ["--flood", "2"],
    ].map((flag): [string[], number, RegExp] => [
      ["--trace", good, ...flag],
      2,
      new RegExp(`${flag[0]} and --trace exclude`),
    ]),
  ];
  for (const [args, expected, message] of cases) {
    const { code, err } = await run("http://127.0.0.1:1/", ...args);
    assert.match(err, message);
    assert.equal(code, expected, err);
    assert.equal(err.trim().split("\n").length, 1, err);
  }
});
