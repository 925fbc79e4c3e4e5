import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { simulate } from "../../dist/cli/simulate.js";
import { temporaryFolder } from "../folder.js";
import { running } from "./streams.js";

const folder = temporaryFolder({ after });

const run = running(simulate);
const line = ["--fixed", "10", "--per-item", "0.3", "--items", "2000"];

interface Simulated {
  capacityPerS: number;
  points: {
    policy: string;
    load: number;
    result: { latencyMs: { p50: number; p99: number }; meanBatchSize: number };
  }[];
}

test("the same what-if gives the same answer, and a table of every policy under every load", async () => {
  const first = await run(...line, "--load", "0.2,0.8");
  assert.equal(first.code, 0, first.err);
  assert.equal((await run(...line, "--load", "0.2,0.8")).out, first.out);
  const lines = first.out.trim().split("\n");
  assert.match(lines[0]!, /^load +policy +calls\/s +mean ms +p50 ms/);
  assert.equal(lines.length, 1 + 2 * 5 + 1);
  assert.match(lines.at(-1)!, /^Capacity with full batches: 1,6\d\d calls\/s\.$/);
});

test("at half load auto is faster than a fixed window and unbatched cannot keep up", async () => {
  const { out } = await run(...line, "--load", "0.5", "--json");
  const { points, capacityPerS } = JSON.parse(out) as Simulated;
  // 32 items in 19.6 ms.
  assert.ok(Math.abs(capacityPerS / (32 / 0.0196) - 1) < 0.01, `${capacityPerS}`);
  const p50 = Object.fromEntries(points.map(({ policy, result }) => [policy, result.latencyMs.p50]));
  assert.ok(p50["auto"]! < p50["fifo"]! && p50["fifo"]! < p50["unbatched"]!, JSON.stringify(p50));
});

test("a measured staircase and a recorded trace are taken from files, and the pictures are drawn", async () => {
  const cost = join(folder, "cost.json");
  writeFileSync(cost, '{"costModel":{"table":[[1,4,0.01],[8,4,0.01],[16,8,0.01]]}}');
  const trace = join(folder, "trace.txt");
  writeFileSync(trace, Array.from({ length: 500 }, (_, i) => 10 * Math.floor(i / 8)).join("\n"));
  const html = join(folder, "out.html");
  const asked = ["--cost", cost, "--trace", trace, "--policy", "auto,unbatched", "--json", "--report", html];
  const { code, out, err } = await run(...asked);
  assert.equal(code, 0, err);
  const { points } = JSON.parse(out) as Simulated;
  const auto = points.find(({ policy }) => policy === "auto")!;
  // Eight calls at once cost what one does.
  assert.ok(auto.result.latencyMs.p50 < 8.1 && auto.result.meanBatchSize > 3.9, JSON.stringify(auto.result));
  assert.ok(readFileSync(html, "utf8").includes("Latency by load"));
});

test("closed arrivals go by callers", async () => {
  const { code, out } = await run(...line, "--arrivals", "closed", "--callers", "1,8", "--policy", "auto", "--json");
  assert.equal(code, 0);
  const { points } = JSON.parse(out) as Simulated;
  assert.deepEqual(
    points.map(({ load }) => load),
    [1, 8],
  );
  assert.ok(points[1]!.result.meanBatchSize > 6);
});

const storm = ["--fixed", "40", "--per-item", "1.2", "--arrivals", "surge", "--load", "0.8", "--patience", "1s"];

test("clients that try again: the table says when auto is back after the surge", async () => {
  const first = await run(...storm, "--policy", "auto");
  assert.equal(first.code, 0, first.err);
  const [head, auto] = first.out.split("\n");
  assert.match(head!, /lost +attempts +back after$/);
  assert.match(auto!, / \d+(\.\d+)? m?s$/);
  const { points } = JSON.parse((await run(...storm, "--policy", "auto", "--attempts", "1", "--json")).out) as {
    points: { result: { goodput: { attemptsPerOperation: number; begunPerS: number[] } } }[];
  };
  const { attemptsPerOperation, begunPerS } = points[0]!.result.goodput;
  assert.equal(attemptsPerOperation, 1);
  assert.ok(begunPerS.length >= 30, "17 s after the surge are simulated too");
});

const shared = ["--fixed", "10", "--per-item", "0.3", "--tenants", "20", "--load", "0.4"];

interface SimulatedTenants {
  points: {
    policy: string;
    tenantKey: string;
    result: { tenants: Record<string, { items: { ok: number; rejected: number }; latencyMs: { p99: number } }> };
  }[];
}

test("tenants beside a flood: with fairKey none of their calls is refused", async () => {
  const first = await run(...shared, "--flood", "2");
  assert.equal(first.code, 0, first.err);
  const [head, ...rows] = first.out.split("\n");
  assert.match(head!, /^load +policy +tenants by +calls\/s .* lost +flood's p99 ms +its lost$/);
  assert.match(rows[0]!, / auto +none /);
  assert.match(rows[1]!, / auto +fairKey .* 0 % .* \d+(\.\d+)? %$/);
  const { points } = JSON.parse((await run(...shared, "--flood", "5", "--json")).out) as SimulatedTenants;
  const [none, fairKey] = points.map(({ result }) => result.tenants);
  assert.ok(none!["tenants"]!.items.rejected > none!["tenants"]!.items.ok, "without turns most are refused");
  assert.equal(fairKey!["tenants"]!.items.rejected, 0);
  // 5 s of both, but for the first tenth.
  const { ok, rejected } = fairKey!["flood"]!.items;
  assert.ok(Math.abs((ok + rejected) / (0.9 * 5 * 5 * 1633) - 1) < 0.05, `${ok} + ${rejected}`);
});

test("tenants without a flood share the load, and are told apart as --tenant-key says", async () => {
  const args = [...shared, "--items", "2000", "--policy", "auto,greedy", "--tenant-key", "groupKey", "--json"];
  const { points } = JSON.parse((await run(...args)).out) as SimulatedTenants;
  assert.deepEqual(
    points.map(({ policy, tenantKey }) => [policy, tenantKey]),
    [
      ["auto", "groupKey"],
      ["greedy", "groupKey"],
    ],
  );
  for (const { result } of points) {
    assert.deepEqual(Object.keys(result.tenants), ["tenants"]);
    assert.equal(result.tenants["tenants"]!.items.ok, 1800);
  }
});

test("flags of tenants that make no sense are refused with the reason", async () => {
  for (const [args, reason] of [
    [["--flood", "5"], /--flood needs --tenants/],
    [["--tenant-key", "none"], /--tenant-key needs --tenants/],
    [["--tenants", "20", "--arrivals", "closed"], /--tenants needs arrivals with a rate/],
    [["--tenants", "0"], /an integer from 1 to 10000/],
  ] as const) {
    const { code, err } = await run(...line, ...args);
    assert.equal(code, 2, err);
    assert.match(err, reason);
  }
});

test("lengths, drawn or from a file, are what a run costs", async () => {
  const lengths = join(folder, "lengths.txt");
  writeFileSync(lengths, "100\n300\n");
  const cost = "--fixed 10 --per-item 0 --per-length 0.1 --items 1000 --load 0.5 --json".split(" ");
  const capacity = async (...args: string[]): Promise<number> => {
    const { code, out, err } = await run(...cost, "--policy", "auto", ...args);
    assert.equal(code, 0, err);
    return (JSON.parse(out) as Simulated).capacityPerS;
  };
  const near = (actual: number, expected: number): void =>
    assert.ok(Math.abs(actual / expected - 1) < 0.01, `${actual}, not ${expected}`);
  // 32 items of 200 on average: 10 + 640 ms; padded to the longest 10 + 960 ms; ten in 2,000 units: 10 + 200 ms.
  near(await capacity("--lengths", lengths), 32 / 0.65);
  near(await capacity("--lengths", lengths, "--padded"), 32 / 0.97);
  near(await capacity("--lengths", lengths, "--max-batch-weight", "2000"), 10 / 0.21);
  const drawn = await capacity("--lengths", "40,2000");
  assert.equal(await capacity("--lengths", "40,2000"), drawn);
});

test("a wrong command line ends with exit 2 and names what is wrong", async () => {
  const bad = join(folder, "bad.txt");
  writeFileSync(bad, "3\n2\n");
  const empty = join(folder, "empty.txt");
  writeFileSync(empty, "\n");
  const cases: [string[], RegExp][] = [
    [[], /state what a batch costs: --fixed 10 --per-item 0\.3/],
    [["--fixed", "0", "--per-item", "0"], /not both 0/],
    [["--fixed", "-1", "--per-item", "1"], /'-1' is invalid. It must be a number from 0 to 86400000/],
    [["--cost", "/nowhere"], /--cost cannot be read: ENOENT/],
    [["--cost", bad], /is not JSON|holds no costModel/],
    [["--cost", bad, "--fixed", "1"], /--cost replaces/],
    [[...line, "--trace", bad], /must hold two or more moments in milliseconds/],
    [[...line, "--policy", "best"], /There are unbatched, .*\bauto\b/],
    [[...line, "--items", "100000000"], /It must be an integer from 1 to 10000000/],
    [[...line, "--fixed", "1e300"], /It must be a number from 0 to 86400000/],
    [[...line, "--rate", "1e-300"], /It must be a number from 0\.001 to 1000000/],
    [
      [...line, "--slots", "1000", "--max-batch-size", "65536"],
      /--slots times --max-batch-size must be at most 100000/,
    ],
    [[...line, "--timeout", "0s"], /must be above 0/],
    [[...line, "--attempts", "2"], /--attempts needs --patience/],
    [[...line, "--obey-retry-after"], /--obey-retry-after needs --patience/],
    [[...line, "--patience", "0s"], /must be a time above 0/],
    [[...line, "--patience", "3s-1s"], /or a range such as 1\.5s-3s/],
    [[...line, "--padded"], /need --lengths/],
    [[...line, "--lengths", "40,2000"], /--lengths needs --fixed, --per-item and --per-length/],
    [[...line, "--per-length", "1", "--lengths", "40,2"], /must be a median >= 1 and a p99/],
    [[...line, "--per-length", "1", "--lengths", "/nowhere"], /--lengths cannot be read: ENOENT/],
    [[...line, "--per-length", "1", "--lengths", empty], /must hold an integer from 1 to 1000000 on each line/],
    [[...line, "extra"], /too many arguments/],
  ];
  for (const [args, message] of cases) {
    const { code, err } = await run(...args);
    assert.match(err, message);
    assert.equal(code, 2, err);
  }
});
