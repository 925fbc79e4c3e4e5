import type { RecordedSettings } from "../../shared/recorded-settings.ts";
import type { RecordedCalls, Recording } from "../record/recording.ts";
import { closedLoopOf, type ClosedLoop } from "./closed-loop.ts";
import { Random } from "../traffic/random.ts";
import { blocksOf, endsOf, isKnownPolicy, overloadRate, type Play, type Played } from "./replay.ts";
import { mean, runCostOf, type RunCost } from "./run-cost.ts";

export type Quantile = "p50" | "p95" | "p99" | "mean";

/** A latency that calls should have. */
export interface Slo {
  readonly quantile: Quantile;
  readonly ms: number;
}

export interface AdviceOptions {
  readonly slo?: Slo | undefined;
  /** Plays the calls this many times as fast. */
  readonly speed?: number | undefined;
  /** Plays them in any order, on other threads say. */
  readonly play: (plays: readonly Play[]) => Promise<readonly Played[]>;
}

/** Of several plays, each with other random run times. */
export interface Judged {
  readonly settings: RecordedSettings;
  readonly latencyMs: Readonly<Record<Quantile, Range>>;
  readonly perS: Range;
  readonly lostRate: Range;
  readonly meanBatchSize: Range;
}

/** The mean, and the least and the most. */
export type Range = readonly [mean: number, low: number, high: number];

export interface RecordAdvice {
  readonly model: string;
  readonly calls: number;
  readonly runs: number;
  readonly verdict: "change" | "change nothing";
  /** In a sentence. */
  readonly because: string;
  readonly present: Judged;
  readonly recommended: Judged;
  /** Settings to change, by their name. */
  readonly changes: Partial<RecordedSettings>;
  /** Of the calls in the record that had a result. */
  readonly recordedMs: Readonly<Record<Quantile, number>>;
  readonly closedLoop: ClosedLoop | undefined;
  /** What limits the advice, in sentences. */
  readonly notes: readonly string[];
}

const hourMs = 3_600_000;
const mostBlocks = 8;
const leastGain = 0.05;
/** The mean may get worse by this share for the sake of the p99. */
const mostHarm = 0.02;
const judgeSeeds = [11, 12, 13, 14, 15, 16];
const finalists = 4;
/** The replay explains a record if its latency is at most this many times off. */
const mostOff = 1.5;

/**
 * Recommends settings from a record, or to change nothing. What a run costs is fitted, the calls are played with the real batcher under
 * the settings that a user owns, the best are picked on one half of the record, and judged on the other.
 * @throws {RangeError} where the record says too little: the message says what is missing.
 */
export async function advise(recording: Recording, options: AdviceOptions): Promise<RecordAdvice> {
  const { slo, speed = 1, play } = options;
  const { model, runs, settings: present } = recording;
  if (present === undefined) throw new RangeError("it has no runs, only arrivals");
  if (!isKnownPolicy(present.policy)) throw new RangeError(`its policy, ${present.policy}, is none of Sheaf's`);
  const cost = runCostOf(runs, (present.prefetch ?? 0) > 0);
  const notes: string[] = [];
  const calls = faster(usualHours(recording.calls, notes), speed);
  const found = closedLoopOf(recording.calls);
  const closed = found && { ...found, clients: Math.max(1, Math.round(found.clients * speed)) };
  const meanRunMs = mean(runs.map(({ heldMs }) => heldMs));
  const blocks = 2 * Math.max(1, Math.min(mostBlocks / 2, Math.floor(calls.atMs.at(-1)! / (200 * meanRunMs))));
  const all = [...Array(blocks).keys()];
  const pick = all.filter((block) => block % 2 === 0);
  const judge = all.filter((block) => block % 2 === 1);
  const quantile = slo?.quantile ?? "p99";
  const better = orderOf(slo, quantile);
  const on = (kept: readonly number[], settings: RecordedSettings, seed: number): Play => ({
    calls,
    part: { blocks, kept },
    closed,
    cost,
    settings,
    seed,
  });

  const tried = new Map<string, Ranked>();
  const tryAll = async (list: readonly RecordedSettings[]): Promise<void> => {
    const others = new Map(list.map((settings) => [JSON.stringify(settings), settings]));
    for (const name of tried.keys()) others.delete(name);
    const played = await play([...others.values()].map((settings) => on(pick, settings, 1)));
    [...others].forEach(([name, settings], i) => tried.set(name, { settings, played: played[i]! }));
  };
  await tryAll([present]);
  const now = [...tried.values()][0]!.played;
  const mostInFlight = Math.max(cost.mostInFlight, 1.05 * now.meanInFlight);
  const isKnown = ({ played }: Ranked): boolean => played.meanInFlight <= mostInFlight;
  const isHarmless = ({ played }: Ranked): boolean =>
    slo !== undefined || now.overload > 0 || played.mean <= (1 + mostHarm) * now.mean;
  const best = (): Ranked[] =>
    [...tried.values()]
      .filter((one) => isKnown(one) && isHarmless(one))
      .sort(better)
      .slice(0, finalists);
  const sizes = sizesOf(present, cost);
  await tryAll(candidates(present, sizes, meanRunMs, slo));
  // Fewer runs at once may be faster where they slow each other down; more of them, only for an objective. No worker of a fleet has the
  // slots of all of them as a setting.
  const factors = recording.isFleet ? [] : slo !== undefined ? [0.5, 2] : cost.contention > 0 ? [0.5] : [];
  if (now.overload > 0) await tryAll(queuesFor(present, now));
  await tryAll(best().flatMap(({ settings }) => neighboursOf(settings, sizes, factors)));
  // The luckiest of many is not the best: the first few once more, with other run times.
  const again = best();
  const second = await play(again.map(({ settings }) => on(pick, settings, 2)));
  const [first] = again
    .map(({ settings, played }, i) => ({ settings, played: meanOf([played, second[i]!]) }))
    .sort(better);
  const chosen = first!.settings;

  // The figures to expect are of the whole record. Each play has its blocks as if they came by chance, so that the range shows how much
  // such a record can differ from the next; together the plays have each block as often as any other.
  const drawn = shuffled(judgeSeeds.flatMap(() => all));
  const plays = [present, chosen].flatMap((settings) => [
    ...judgeSeeds.map((seed) => on(judge, settings, seed)),
    ...judgeSeeds.map((seed, i) => on(drawn.slice(blocks * i, blocks * (i + 1)), settings, seed)),
  ]);
  const played = await play(plays);
  const [before, expectedBefore, after, expectedAfter] = [0, 1, 2, 3].map((part) =>
    played.slice(part * judgeSeeds.length, (part + 1) * judgeSeeds.length),
  ) as [Played[], Played[], Played[], Played[]];
  const recordedMs = quantilesOf(recording.calls);
  const result = {
    model,
    calls: recording.calls.count,
    runs: runs.length,
    present: judgedOf(present, expectedBefore),
    recordedMs,
    closedLoop: closed,
    notes,
  };
  const nothing = (because: string): RecordAdvice => ({
    ...result,
    verdict: "change nothing",
    because,
    recommended: result.present,
    changes: {},
  });
  notes.push(...limitsOf(recording, cost, closed, present));
  const unknown = [...tried.values()].filter((one) => !isKnown(one)).length;
  if (unknown > 0)
    notes.push(
      `How runs slow each other down is not in the record for more than ${shownNumber(mostInFlight)} at once: ` +
        `${unknown} settings with more were left out.`,
    );
  const replayedMs = result.present.latencyMs[quantile][0];
  const off = replayedMs / recordedMs[quantile];
  if (speed === 1 && !(off < mostOff && off > 1 / mostOff))
    return nothing(
      `the replay of the present settings gives ${quantile} ${shown(replayedMs)}, the record ` +
        `${shown(recordedMs[quantile])}: something outside the record decides`,
    );
  if (chosen === present) return nothing(`none of ${tried.size} settings is better`);
  const gainsOf = (from: readonly Played[], to: readonly Played[]): number[] =>
    from.map((one, i) => gainOf(one, to[i]!, quantile));
  const gains = gainsOf(before, after);
  const gain = mean(gains);
  // What one half of the record gains, the whole one may not.
  const sureGain = Math.min(gain, mean(gainsOf(expectedBefore, expectedAfter)));
  const squares = gains.reduce((sum, one) => sum + (one - gain) ** 2, 0);
  /** Two standard errors. */
  const error = 2 * Math.sqrt(squares / (gains.length * (gains.length - 1)));
  const isEnough = (list: readonly Played[]): boolean => slo !== undefined && list.every((one) => meets(one, slo));
  const frees = isEnough(after) && chosen.concurrency < present.concurrency;
  if (isEnough(before) && !frees) return nothing("they meet the objective");
  if (!frees && (sureGain < leastGain || gain < error))
    return nothing(
      `the best of ${tried.size} settings gains ${Math.round(100 * sureGain)} %, ` +
        (sureGain < leastGain ? "less than 5 %" : "no more than the plays scatter"),
    );
  if (slo !== undefined && !isEnough(after)) notes.push("No setting that was tried meets the objective.");
  return {
    ...result,
    verdict: "change",
    because: becauseOf(before, after, quantile, gain, frees),
    recommended: judgedOf(chosen, expectedAfter),
    changes: Object.fromEntries(
      Object.entries(chosen).filter(([name, value]) => value !== present[name as keyof RecordedSettings]),
    ),
  };
}

/** Batch sizes at some factors of a setting's, without those so far from the recorded runs that their cost is not known. */
type Sizes = (settings: RecordedSettings, factors: readonly number[]) => readonly number[];

function sizesOf({ maxBatchSize }: RecordedSettings, { smallest, largest }: RunCost): Sizes {
  const present = maxBatchSize ?? largest;
  const [least, most] = [Math.min(present, smallest / 2), Math.max(present, 2 * largest)];
  return (settings, factors) =>
    factors
      .map((factor) => Math.max(1, Math.round(factor * (settings.maxBatchSize ?? largest))))
      .filter((size) => size >= least && size <= most);
}

function candidates(
  present: RecordedSettings,
  sizes: Sizes,
  meanRunMs: number,
  slo: Slo | undefined,
): RecordedSettings[] {
  // The last is 1.
  return sizes(present, [1, 2, 4, 0.5, 0.25, 0.125, 0]).flatMap((size) =>
    waysOf(present, meanRunMs, slo).map((way) => ({ ...present, ...way, maxBatchSize: size })),
  );
}

/** Policies and what they hold. */
function waysOf(present: RecordedSettings, meanRunMs: number, slo: Slo | undefined): Partial<RecordedSettings>[] {
  const { policy, maxWaitMs, latencyBudgetMs } = present;
  const ways: Partial<RecordedSettings>[] = [{}];
  // auto() needs no cap: the length of a window, or a cap shorter than a run, keeps it from holding as long as that gains.
  const isCapped = maxWaitMs !== undefined && (policy !== "auto" || maxWaitMs < meanRunMs);
  const free = isCapped ? { maxWaitMs: Math.max(maxWaitMs, 50, Math.ceil(2 * meanRunMs)) } : {};
  if (policy !== "auto" || isCapped) ways.push({ ...free, policy: "auto" });
  if (policy !== "greedy") ways.push({ policy: "greedy", latencyBudgetMs: undefined });
  if (policy === "auto" && latencyBudgetMs !== undefined) ways.push({ latencyBudgetMs: undefined });
  if (policy === "auto" && slo !== undefined) ways.push({ latencyBudgetMs: Math.max(1, Math.floor(0.8 * slo.ms)) });
  if (!policy.startsWith("fixed-window"))
    ways.push({
      policy: "fixed-window",
      maxWaitMs: Math.max(1, Math.round(meanRunMs / 4)),
      latencyBudgetMs: undefined,
    });
  else if (maxWaitMs !== undefined)
    for (const factor of [0.5, 0.1]) ways.push({ maxWaitMs: Math.max(1, Math.round(factor * maxWaitMs)) });
  return ways;
}

/** With sizes between those tried, other numbers of slots, or a longer window. */
function neighboursOf(settings: RecordedSettings, sizes: Sizes, factors: readonly number[]): RecordedSettings[] {
  const { concurrency, policy, maxWaitMs } = settings;
  const list = [
    ...sizes(settings, [0.75, 1.5]).map((size) => ({ ...settings, maxBatchSize: size })),
    ...factors.map((factor) => ({ ...settings, concurrency: Math.ceil(factor * concurrency) })),
  ];
  if (!policy.startsWith("fixed-window") || maxWaitMs === undefined) return list;
  return [...list, { ...settings, maxWaitMs: 2 * maxWaitMs }];
}

/** Queues that hold what can be answered in time, and half of it. */
function queuesFor(present: RecordedSettings, { perS }: Played): RecordedSettings[] {
  const { timeoutMs, maxQueueSize = Infinity } = present;
  if (timeoutMs === undefined) return [];
  return [0.9, 0.45]
    .map((share) => Math.max(1, Math.round((share * perS * timeoutMs) / 1000)))
    .filter((size) => size < maxQueueSize)
    .map((size) => ({ ...present, maxQueueSize: size }));
}

interface Ranked {
  readonly settings: RecordedSettings;
  readonly played: Played;
}

const meets = (played: Played, { quantile, ms }: Slo): boolean => played.overload === 0 && played[quantile] <= ms;

/** With an objective: the fewest slots that meet it; else, and then, fewer lost calls, and then the latency. */
function orderOf(slo: Slo | undefined, quantile: Quantile): (a: Ranked, b: Ranked) => number {
  const keys = ({ settings, played }: Ranked): readonly number[] => [
    // A tenth is kept in reserve.
    slo === undefined || !meets(played, { ...slo, ms: 0.9 * slo.ms }) ? Infinity : settings.concurrency,
    played.overload,
    played.overload > 0 ? -played.perS : played[quantile],
  ];
  return (a, b) => {
    const [first, second] = [keys(a), keys(b)];
    const at = first.findIndex((key, i) => key !== second[i]);
    return at < 0 ? 0 : first[at]! < second[at]! ? -1 : 1;
  };
}

/** The share by which it is better, 0 … 1; negative where it is worse. */
function gainOf(before: Played, after: Played, quantile: Quantile): number {
  if (before.overload !== after.overload) return before.overload - after.overload;
  return before.overload > 0 ? 1 - before.perS / after.perS : 1 - after[quantile] / before[quantile];
}

function becauseOf(
  before: readonly Played[],
  after: readonly Played[],
  quantile: Quantile,
  gain: number,
  frees: boolean,
): string {
  const [was, is] = [meanOf(before), meanOf(after)];
  if (frees) return "the objective is met with fewer runs at once";
  if (was.overload > 0.5)
    return `overload: calls without a result: ${percent(was.lostRate)} → ${percent(is.lostRate)}, answered a second: ${Math.round(was.perS)} → ${Math.round(is.perS)}`;
  return `${quantile} ${shown(was[quantile])} → ${shown(is[quantile])}, ${Math.round(100 * gain)} % less`;
}

/** A longer record: its busiest hour and its usual one. */
function usualHours(calls: RecordedCalls, notes: string[]): RecordedCalls {
  const hours = Math.ceil((calls.atMs.at(-1)! + 1) / hourMs);
  if (hours <= 2) return calls;
  const ends = endsOf(calls.atMs, hours);
  const countOf = (hour: number): number => ends[hour]! - (ends[hour - 1] ?? 0);
  const order = [...ends.keys()].sort((a, b) => countOf(a) - countOf(b));
  const [usual, busiest] = [order[hours >> 1]!, order.at(-1)!];
  notes.push(`Of ${hours} hours, the busiest and a usual one were played.`);
  return blocksOf(calls, { blocks: hours, kept: [usual, busiest].sort((a, b) => a - b) });
}

const faster = (calls: RecordedCalls, speed: number): RecordedCalls =>
  speed === 1 ? calls : { ...calls, atMs: calls.atMs.map((atMs) => atMs / speed) };

function limitsOf(
  { lost, calls }: Recording,
  { contention, largest }: RunCost,
  closed: ClosedLoop | undefined,
  present: RecordedSettings,
): string[] {
  const notes: string[] = [];
  if (closed !== undefined) {
    const pause = closed.thinkMs > 0 ? `, ${shown(closed.thinkMs)} after it on average` : " at once";
    notes.push(`About ${closed.clients} callers wait for their answer and call again${pause}: played as such.`);
  }
  if (lost > overloadRate * calls.count)
    notes.push(
      `${percent(lost / calls.count)} of the calls got no result: overload hides how many would have come, and when the refused came is known to the second only.`,
    );
  if (contention > 0.02) notes.push(`Each further run in flight slows a run by ${percent(contention)}.`);
  if (largest < (present.maxBatchSize ?? largest)) notes.push(`No run had more than ${largest} items.`);
  return notes;
}

function quantilesOf({ atMs, endMs }: RecordedCalls): Record<Quantile, number> {
  const latencies = endMs
    .map((ms, i) => ms - atMs[i]!)
    .filter((ms) => !Number.isNaN(ms))
    .sort();
  const at = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(share * latencies.length))]!;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), mean: mean(latencies) };
}

function meanOf(list: readonly Played[]): Played {
  const names = Object.keys(list[0]!) as (keyof Played)[];
  const of = (name: keyof Played): number => mean(list.map((one) => one[name]));
  return Object.fromEntries(names.map((name) => [name, of(name)])) as unknown as Played;
}

function judgedOf(settings: RecordedSettings, list: readonly Played[]): Judged {
  const range = (name: keyof Played): Range => {
    const values = list.map((one) => one[name]);
    return [meanOf(list)[name], Math.min(...values), Math.max(...values)];
  };
  return {
    settings,
    latencyMs: { p50: range("p50"), p95: range("p95"), p99: range("p99"), mean: range("mean") },
    perS: range("perS"),
    lostRate: range("lostRate"),
    meanBatchSize: range("meanBatchSize"),
  };
}

function shuffled(list: number[]): number[] {
  const random = new Random(1);
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(random.uniform() * (last + 1));
    [list[last], list[other]] = [list[other]!, list[last]!];
  }
  return list;
}

const shownNumber = (value: number): string => String(Number(value.toPrecision(3)));
const shown = (ms: number): string => `${shownNumber(ms)} ms`;
const percent = (share: number): string => `${Number((100 * share).toPrecision(2))} %`;
