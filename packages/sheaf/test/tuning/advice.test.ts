import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedWindow, greedy } from "../../dist/index.js";
import { advise, play, readRecords, simulateRecorded } from "../../dist/internal/tuning.js";
import { closedLoopOf } from "../../dist/tuning/advice/closed-loop.js";
import { costAt, runCostOf } from "../../dist/tuning/advice/run-cost.js";
import type { SimulationOptions } from "../../dist/tuning/index.js";

const one = async (...files: (readonly string[])[]) => [...(await readRecords(files)).values()][0]!;

async function linesOf(options: Partial<SimulationOptions>): Promise<string[]> {
  const lines: string[] = [];
  const usual = { cost: { fixedMs: 10, perItemMs: 0.5 }, concurrency: 1, maxBatchSize: 16, seed: 5 };
  const arrivals = { pattern: "poisson", ratePerS: 400 } as const;
  await simulateRecorded({ ...usual, arrivals, items: 8000, ...options }, (line) => lines.push(line));
  return lines;
}
const recordOf = async (options: Partial<SimulationOptions>) => one(await linesOf(options));
const inTurn = async (plays: Parameters<Parameters<typeof advise>[1]["play"]>[0]) => {
  const played = [];
  for (const each of plays) played.push(await play(each));
  return played;
};

test("what is read is what came: calls in order, with those that joined no run, over gaps and several files", async () => {
  const lines = await linesOf({ weights: { pattern: "lognormal", median: 40, p99: 300 }, priorities: { bulk: 0.5 } });
  const { calls, runs, settings, lost } = await one(lines);
  assert.equal(calls.count, 8000);
  assert.ok(calls.atMs.every((ms, i) => i === 0 || ms >= calls.atMs[i - 1]!));
  assert.ok(Math.abs(calls.atMs.at(-1)! / 20_000 - 1) < 0.05, "8,000 at 400 a second");
  assert.ok(calls.lane.some((lane) => lane === 2) && calls.lane.some((lane) => lane === 1));
  assert.equal(lost, 0);
  assert.equal(settings?.policy, "auto");
  assert.equal(
    runs.reduce((sum, { size }) => sum + size, 0),
    8000,
  );
  // A file that has grown too large goes on in another one, in the middle of a second.
  const half = lines.findIndex((line, i) => i > lines.length / 2 && !line.startsWith('{"sheaf"')) + 1;
  const both = await one(lines.slice(half), lines.slice(0, half));
  const rounded = ({ calls: { atMs } }: typeof both): number[] => Array.from(atMs, (ms) => Math.round(1000 * ms));
  assert.deepEqual(rounded(both), rounded({ calls } as typeof both), "in any order");
  assert.deepEqual(both.calls.weight.toSorted(), calls.weight.toSorted());
  // Without three seconds in the middle the rest closes up.
  const isSecond = (line: string): boolean => line.startsWith('{"sheaf"');
  const seconds = lines.flatMap((line, i) => (isSecond(line) ? [i] : []));
  const gap = await one([...lines.slice(0, seconds[8]! + 1), ...lines.slice(seconds[11]! + 1)]);
  assert.ok(Math.abs(gap.calls.atMs.at(-1)! - (calls.atMs.at(-1)! - 3000)) < 60, `${gap.calls.atMs.at(-1)}`);
});

test("moments since 1970 lose nothing, and files of the same time are in one order", async () => {
  const fileOf = (origin: number, ...ats: number[]): string[] => [
    ...ats.map((at, run) => JSON.stringify({ run, model: "a", at, took: 1, held: 1, waits: [0] })),
    JSON.stringify({ sheaf: 1, model: "a", origin, since: ats[0], at: ats.at(-1)! + 1, settings: {} }),
  ];
  // The sum of these two is not exact.
  const origin = 1_790_000_000_000.3;
  const { calls } = await one(fileOf(origin + 1, 33_333, 36_333), fileOf(origin, 33_333, 35_333, 1_136_333));
  assert.equal(calls.atMs[0], 0);
  assert.deepEqual(
    Array.from(calls.atMs, (ms) => Number(ms.toFixed(3))),
    [0, 1, 2, 4, 1103],
  );
});

test("traces of other tools are read by their names; a line that is neither is refused with its number", async () => {
  const { calls, settings } = await one([
    '{"timestamp": 27482, "input_length": 6955, "output_length": 52}',
    "",
    '{"timestamp": 30535}',
  ]);
  assert.deepEqual([...calls.atMs], [0, 3053]);
  assert.deepEqual([...calls.weight], [6955, 1]);
  assert.equal(settings, undefined);
  for (const line of ["{}", "12", "no", '{"timestamp": -1}'])
    await assert.rejects(readRecords([['{"timestamp": 1}', line]]), /^RangeError: line 2 is neither of a record/);
  await assert.rejects(readRecords([['{"timestamp": 1, "input_length": "x"}']]), /input_length must be a number/);
});

test("the cost of runs is fitted by size, by weight and by the runs beside them", async () => {
  const bySize = runCostOf((await recordOf({ noise: { cv: 0.2 } })).runs, false);
  const near = (actual: number, expected: number): void =>
    assert.ok(Math.abs(actual / expected - 1) < 0.06, `${actual}, not ${expected}`);
  for (const size of [2, 8, 20])
    near(costAt(bySize.line, undefined)({ size, weight: size, heaviest: 1 }), 10 + 0.5 * size);
  assert.deepEqual([bySize.contention, bySize.mostInFlight], [0, 1], "one run at a time");
  const weighed = await recordOf({
    weights: { pattern: "lognormal", median: 40, p99: 300 },
    cost: { fixedMs: 5, perItemMs: 0, perWeightMs: 0.02, batchWeight: "padded" },
  });
  const { byWeight } = runCostOf(weighed.runs, false);
  assert.equal(byWeight?.padded, true);
  near(byWeight.perWeightMs, 0.02);
  const beside = await recordOf({
    concurrency: 4,
    policy: greedy(),
    arrivals: { pattern: "poisson", ratePerS: 150 },
    cost: (size, _now, _weights, inFlight) => (10 + 0.5 * size) * (1 + 0.25 * (inFlight - 1)),
  });
  near(1 + runCostOf(beside.runs, false).contention, 1.25);
  // A slow run meets more of the others, but not because of them.
  const apart = await recordOf({
    concurrency: 4,
    policy: fixedWindow(),
    maxWaitMs: 20,
    noise: { cv: 0.1, outlierRate: 0.03, outlierFactor: 5 },
    cost: { fixedMs: 27, perItemMs: 0.5 },
    items: 20_000,
  });
  near(1 + runCostOf(apart.runs, false).contention, 1);
});

test("settings with more runs at once than the record shows are left out, and the advice says so", async () => {
  const record = await recordOf({
    concurrency: 8,
    policy: fixedWindow(),
    maxWaitMs: 5,
    arrivals: { pattern: "closed", clients: 20, thinkMs: 12 },
    cost: (size, _now, _weights, inFlight) => (1.5 + 0.16 * size) * (1 + 0.2 * (inFlight - 1)),
    items: 4000,
    noise: { cv: 0.3, outlierRate: 0.03, outlierFactor: 5 },
  });
  const { recommended, notes } = await advise(record, { play: inTurn });
  assert.equal(recommended.settings.policy, "fixed-window", "greedy runs five at once");
  assert.match(notes.join(" "), /About \d+ callers wait for their answer and call again, .*: played as such/);
  assert.match(notes.join(" "), /for more than [\d.]+ at once: \d+ settings with more were left out/);
});

test("callers who wait for their answer are noticed, with their number and pause; others are not taken for them", async () => {
  const loop = async (clients: number, thinkMs: number) =>
    closedLoopOf((await recordOf({ arrivals: { pattern: "closed", clients, thinkMs } })).calls);
  assert.deepEqual(await loop(12, 0), { clients: 12, thinkMs: 0 });
  const { clients, thinkMs } = (await loop(40, 30))!;
  assert.ok(Math.abs(clients / 40 - 1) < 0.2 && Math.abs(thinkMs / 30 - 1) < 0.3, `${clients}, ${thinkMs}`);
  const open: SimulationOptions["arrivals"][] = [
    { pattern: "poisson", ratePerS: 900 },
    { pattern: "poisson", ratePerS: 50 },
    { pattern: "periodic", ratePerS: 300 },
    { pattern: "burst", ratePerS: 300, onMs: 200, offMs: 200 },
    { pattern: "clump", ratePerS: 300, size: 8 },
  ];
  for (const arrivals of open)
    assert.equal(closedLoopOf((await recordOf({ arrivals })).calls), undefined, JSON.stringify(arrivals));
});

test("a window that only delays is found and left; what it predicts is what a run with other arrivals shows", async () => {
  const options = {
    policy: fixedWindow(),
    maxWaitMs: 40,
    maxBatchSize: 32,
    arrivals: { pattern: "poisson", ratePerS: 300 },
  } as const;
  const advice = await advise(await recordOf(options), { play: inTurn });
  assert.equal(advice.verdict, "change", advice.because);
  const { policy, maxBatchSize, maxWaitMs } = advice.recommended.settings;
  const lines: string[] = [];
  const served = await simulateRecorded(
    {
      cost: { fixedMs: 10, perItemMs: 0.5 },
      concurrency: 1,
      arrivals: options.arrivals,
      items: 20_000,
      seed: 77,
      maxBatchSize: maxBatchSize!,
      policy: policy === "fixed-window" ? fixedWindow() : policy === "greedy" ? greedy() : undefined,
      maxWaitMs,
    },
    (line) => lines.push(line),
  );
  const predicted = advice.recommended.latencyMs.p99;
  assert.ok(Math.abs(served.latencyMs.p99 / predicted[0] - 1) < 0.15, `${served.latencyMs.p99}, not ${predicted}`);
  assert.ok(predicted[0] < 0.9 * advice.present.latencyMs.p99[0]);
  assert.ok(predicted[1] <= predicted[0] && predicted[0] <= predicted[2]);
});

test("after a window auto() may hold for longer than it, and sizes between halves and doubles are tried", async () => {
  const gainOf = async (options: Partial<SimulationOptions>) => {
    const { present, recommended } = await advise(await recordOf({ concurrency: 2, ...options }), { play: inTurn });
    return [recommended.settings, present.latencyMs.p99[0] / recommended.latencyMs.p99[0]] as const;
  };
  const [held, ofHold] = await gainOf({
    policy: fixedWindow(),
    maxWaitMs: 9,
    maxBatchSize: 64,
    arrivals: { pattern: "poisson", ratePerS: 1150 },
    cost: { fixedMs: 21, perItemMs: 0.376 },
  });
  assert.ok(held.policy === "auto" && held.maxWaitMs! > 9 && ofHold > 1.1, `${JSON.stringify(held)}: ${ofHold}`);
  const [sized, ofSize] = await gainOf({
    maxBatchSize: 8,
    arrivals: { pattern: "closed", clients: 11, thinkMs: 0 },
    cost: { fixedMs: 7.2, perItemMs: 1.63 },
    noise: { cv: 0.1 },
  });
  assert.ok(sized.maxBatchSize === 6 && ofSize > 1.1, `${JSON.stringify(sized)}: ${ofSize}`);
});

test("callers who wait for their answer are played in their lanes", async () => {
  const record = await recordOf({
    concurrency: 2,
    maxBatchSize: 3,
    arrivals: { pattern: "closed", clients: 14, thinkMs: 4 },
    cost: { fixedMs: 2.5, perItemMs: 0.1 },
    priorities: { bulk: 0.3 },
  });
  const { closedLoop, present, recordedMs } = await advise(record, { play: inTurn });
  assert.ok(closedLoop !== undefined);
  for (const quantile of ["mean", "p99"] as const)
    assert.ok(Math.abs(present.latencyMs[quantile][0] / recordedMs[quantile] - 1) < 0.1, quantile);
});

test("settings that fit are left alone", async () => {
  const advice = await advise(await recordOf({ maxBatchSize: 32 }), { play: inTurn });
  assert.deepEqual([advice.verdict, advice.changes], ["change nothing", {}], advice.because);
  assert.deepEqual(advice.recommended, advice.present);
});

test("where runs slow each other down, a longer window or fewer workers are found", async () => {
  const record = await recordOf({
    concurrency: 8,
    policy: fixedWindow(),
    maxWaitMs: 9,
    maxBatchSize: 32,
    arrivals: { pattern: "poisson", ratePerS: 1010 },
    cost: (size, _now, _weights, inFlight) => (37 + 0.27 * size) * (1 + 0.2 * (inFlight - 1)),
    noise: { cv: 0.1 },
  });
  const { present, recommended, because } = await advise(record, { play: inTurn });
  const { maxWaitMs, concurrency } = recommended.settings;
  assert.ok(maxWaitMs! > 9 || concurrency < 8, because);
  assert.ok(recommended.latencyMs.p99[0] < 0.85 * present.latencyMs.p99[0], because);
});

test("of a longer record the busiest hour and a usual one are played", async () => {
  const counts = [1000, 3000, 500, 2000];
  // Most calls come in pairs, so that runs have two sizes.
  const atMs = counts.flatMap((count, hour) =>
    Array.from({ length: count }, (_, i) => 3_600_000 * (hour + (i - (i % 3 === 1 ? 1 : 0)) / count)),
  );
  const record = await recordOf({ arrivals: { pattern: "trace", atMs }, items: atMs.length });
  const played = new Set<number>();
  const { notes } = await advise(record, {
    play: (plays) => {
      for (const { calls } of plays) played.add(calls.count);
      return inTurn(plays);
    },
  });
  assert.match(notes.join(" "), /Of 4 hours, the busiest and a usual one were played/);
  const [count] = played;
  assert.ok(played.size === 1 && Math.abs(count! - 5000) < 10, `${[...played]}`);
});

test("with an objective: the fewest workers that meet it, and nothing where it is met", async () => {
  const lines = await linesOf({
    concurrency: 8,
    policy: greedy(),
    arrivals: { pattern: "poisson", ratePerS: 500 },
    cost: (size) => 10 + 0.5 * size,
  });
  const slo = { quantile: "p99", ms: 60 } as const;
  const frees = await advise(await one(lines), { slo, play: inTurn });
  assert.equal(frees.verdict, "change", frees.because);
  assert.ok(frees.changes.concurrency! < 8);
  const ofWorkers = lines.map((text) => {
    const line = JSON.parse(text) as { run?: number; waits: unknown[] };
    return line.run === undefined
      ? text
      : JSON.stringify({ ...line, worker: `${line.run % 8}`, size: line.waits.length });
  });
  const fleet = await advise(await one(ofWorkers), { slo, play: inTurn });
  assert.deepEqual([fleet.runs, fleet.changes.concurrency], [frees.runs, undefined]);
  const met = await recordOf({ arrivals: { pattern: "poisson", ratePerS: 100 } });
  const { verdict, because } = await advise(met, { slo: { quantile: "p99", ms: 1000 }, play: inTurn });
  assert.deepEqual([verdict, because], ["change nothing", "they meet the objective"]);
});

test("overload is named, and a queue that holds what can be answered in time, or larger runs, answer more", async () => {
  const advice = await advise(
    await recordOf({
      maxBatchSize: 4,
      arrivals: { pattern: "burst", ratePerS: 400, onMs: 3000, offMs: 1000 },
      timeoutMs: 500,
      maxQueueSize: 1000,
    }),
    { play: inTurn },
  );
  assert.equal(advice.verdict, "change", advice.because);
  assert.ok(
    advice.notes.some((note) => /of the calls got no result/.test(note)),
    advice.notes.join(),
  );
  assert.ok(advice.recommended.lostRate[0] < advice.present.lostRate[0]);
});

test("it refuses to say anything with too few runs, one size, no runs, or a policy that it does not know", async () => {
  const refuses = async (options: Partial<SimulationOptions>, reason: RegExp): Promise<void> =>
    assert.rejects(async () => advise(await recordOf(options), { play: inTurn }), reason);
  await refuses({ items: 20 }, /^RangeError: it has \d+ runs that ended well, and at least 30/);
  await refuses({ maxBatchSize: 1 }, /nearly all of the 8000 runs had 1 items/);
  const own = { name: "own", decide: () => ({ run: 1 }) };
  await refuses({ policy: own }, /its policy, own, is none of Sheaf's/);
  await assert.rejects(async () => advise(await one(['{"timestamp": 1}']), { play: inTurn }), /no runs, only arrivals/);
});

test("where the replay does not give the recorded latency, something else decides: change nothing", async () => {
  const record = await recordOf({ policy: fixedWindow(), maxWaitMs: 40 });
  const late = { ...record, calls: { ...record.calls, endMs: record.calls.endMs.map((ms) => ms + 500) } };
  const { verdict, because } = await advise(late, { play: inTurn });
  assert.equal(verdict, "change nothing");
  assert.match(because, /the replay of the present settings gives p99 .*, the record .*: something/);
});
