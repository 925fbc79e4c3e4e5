import type { LoadResult } from "./result.ts";
import { figures, percent, shownMs } from "../shared/terminal.ts";

type Quantile = "p50" | "p99";

/** How often the lower one is lower: `ratio` with the range that holds it in 99 of 100 cases. */
interface Lead {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

/** The basis of the sentences of `comparisons`; stands below them. */
export const comparisonBasis: string =
  "“Lower” is said where the 99 % range of the ratio lies above 1. The range comes from leaving out each tenth of the run " +
  "in turn, on the same arrivals; it knows nothing of another seed, another hour or another machine.";

// A configuration that answers this much less than the best cannot win, even with the best latency.
const answeredLess = 0.01;

/** One sentence for each pattern: who won and by how much, or that there is no difference beyond noise. */
export function comparisons(results: readonly LoadResult[]): Map<string, string> {
  const patterns = new Set(results.map(({ pattern }) => pattern));
  return new Map([...patterns].map((pattern) => [pattern, sentence(results.filter((one) => one.pattern === pattern))]));
}

function sentence(runs: readonly LoadResult[]): string {
  const [first] = runs;
  if (first === undefined) return "";
  const best = Math.max(...runs.map(({ successRate }) => successRate));
  if (best === 0) return "Nothing was answered.";
  if (runs.length === 1)
    return `p50 ${shownMs(first.latencyMs.p50)}, p99 ${shownMs(first.latencyMs.p99)}, ${percent(first.successRate)} answered.`;
  const saturated = runs.filter((run) => run.saturated !== undefined);
  if (saturated.length > 0)
    return `No verdict: the load generator could not keep its schedule with ${namesOf(saturated)}, so these latencies are its own too.`;
  const [kept, lost] = [
    runs.filter(({ successRate }) => successRate >= best - answeredLess),
    runs.filter(({ successRate }) => successRate < best - answeredLess),
  ];
  const losers = lost.map((run) => `${run.configuration} ${percent(run.successRate)}`).join(", ");
  if (kept.length === 1)
    return `${kept[0]!.configuration} won: it answered ${percent(best)} of the requests, ${losers}.`;
  const less = lost.length === 0 ? "" : ` Fewer requests were answered by ${losers}.`;
  if (kept.some(({ without }) => without.length === 0))
    return `No verdict: a run of less than 1.25 s is too short to tell a difference from noise.${less}`;
  return `${ofLatency(kept)}${less}`;
}

function ofLatency(runs: readonly LoadResult[]): string {
  const [p50, p99] = [front(runs, "p50"), front(runs, "p99")];
  const winner = (led: Front): string | undefined => (led.first.length === 1 ? led.first[0]!.configuration : undefined);
  if (winner(p50) === undefined && winner(p99) === undefined && p50.next === undefined && p99.next === undefined)
    return `No difference beyond noise between ${namesOf(runs)}: p50 ${span(runs, "p50")}, p99 ${span(runs, "p99")}.`;
  const both = winner(p50) !== undefined && winner(p50) === winner(p99) ? `${winner(p50)} won. ` : "";
  return `${both}${clause(p50)} ${clause(p99)}`;
}

interface Front {
  readonly quantile: Quantile;
  /** The lowest, and all that differ from it only by noise. */
  readonly first: readonly LoadResult[];
  /** The lowest of the others, and the lead over it. */
  readonly next: { readonly run: LoadResult; readonly lead: Lead } | undefined;
}

function front(runs: readonly LoadResult[], quantile: Quantile): Front {
  const [lowest, ...others] = runs.toSorted((a, b) => a.latencyMs[quantile] - b.latencyMs[quantile]);
  const leads = others.map((run) => ({ run, lead: leadOf(lowest!, run, quantile) }));
  const [next] = leads.filter(({ lead }) => lead.low > 1);
  const first = [lowest!, ...leads.filter(({ lead }) => !(lead.low > 1)).map(({ run }) => run)];
  return { quantile, first, next };
}

function clause({ quantile, first, next }: Front): string {
  const name = { p50: "Median (p50)", p99: "Tail (p99)" }[quantile];
  const [lowest] = first;
  const shown = first.map((run) => `${run.configuration} ${shownMs(run.latencyMs[quantile])}`).join(", ");
  const tied = first.length === 1 ? "" : ", no difference beyond noise";
  if (next === undefined) return `${name}: ${shown}${tied}.`;
  const { lead, run } = next;
  return (
    `${name}: ${shown}${tied}; ${first.length === 1 ? "" : `${lowest!.configuration} `}${factor(lead.ratio)} (${factor(lead.low)} to ` +
    `${factor(lead.high)}) lower than the next, ${run.configuration} with ${shownMs(run.latencyMs[quantile])}.`
  );
}

// Each quantile is known to within 0.2 %, the width of a bucket.
const resolution = 0.004;
// Student's t for 99 of 100, by degrees of freedom; runs have 5 to 10 parts.
const t99: Readonly<Record<number, number>> = { 4: 4.604, 5: 4.032, 6: 3.707, 7: 3.499, 8: 3.355, 9: 3.25 };

/**
 * The ratio of two runs' quantiles, with a jackknife over their parts: each part is left out of both runs, so that the effect of the
 * arrivals cancels out.
 */
export function leadOf(lower: LoadResult, higher: LoadResult, quantile: Quantile): Lead {
  const logRatio = (a: { readonly [q in Quantile]: number }, b: { readonly [q in Quantile]: number }): number =>
    Math.log(b[quantile] / a[quantile]);
  const parts = Math.min(lower.without.length, higher.without.length);
  const whole = logRatio(lower.latencyMs, higher.latencyMs);
  const without = Array.from({ length: parts }, (_, part) => logRatio(lower.without[part]!, higher.without[part]!));
  const mean = without.reduce((sum, value) => sum + value, 0) / parts;
  const variance = ((parts - 1) / parts) * without.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const margin = Math.max(resolution, t99[parts - 1]! * Math.sqrt(variance));
  return { ratio: Math.exp(whole), low: Math.exp(whole - margin), high: Math.exp(whole + margin) };
}

const factor = (ratio: number): string => `${figures(ratio)}×`;

function span(runs: readonly LoadResult[], quantile: Quantile): string {
  const values = runs.map(({ latencyMs }) => latencyMs[quantile]);
  return `${shownMs(Math.min(...values))} to ${shownMs(Math.max(...values))}`;
}

const namesOf = (runs: readonly LoadResult[]): string =>
  new Intl.ListFormat("en", { type: "conjunction" }).format(runs.map(({ configuration }) => configuration));
