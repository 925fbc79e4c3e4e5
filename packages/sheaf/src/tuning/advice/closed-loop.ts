import type { RecordedCalls } from "../record/recording.ts";

/** Callers who wait for an answer before they call again. */
export interface ClosedLoop {
  readonly clients: number;
  /** Mean time from an answer to the next call. */
  readonly thinkMs: number;
}

const mostCalls = 50_000;
/** By so much, for each call, a closed loop must explain the arrivals better than a rate that does not depend on it (log likelihood). */
const leastGain = 0.005;
const leastTotal = 20;
/** Calls at such even distances follow a clock: of their gaps, the deviation ÷ the mean. */
const mostEven = 0.3;

/**
 * Whether the calls look like those of a closed loop: with n callers of whom L wait, calls come at the rate (n − L) ÷ think time, and at
 * the same rate for every L where callers do not wait. The likelier of the two.
 */
export function closedLoopOf({ count, atMs, endMs }: RecordedCalls): ClosedLoop | undefined {
  const calls = Math.min(count, mostCalls);
  const endsMs = endMs
    .slice(0, calls)
    .filter((ms) => !Number.isNaN(ms))
    .sort();
  const arrivals: number[] = [];
  const timeMs: number[] = [];
  let [level, end, nowMs] = [0, 0, atMs[0] ?? 0];
  const pass = (untilMs: number): void => {
    timeMs[level] = (timeMs[level] ?? 0) + Math.max(0, untilMs - nowMs);
    nowMs = Math.max(nowMs, untilMs);
  };
  for (let call = 0; call < calls; call++) {
    // One microsecond: an answer, and the call that follows it at once, are rounded apart.
    for (; end < endsMs.length && endsMs[end]! <= atMs[call]! + 0.0015; end++) {
      pass(endsMs[end]!);
      level = Math.max(0, level - 1);
    }
    pass(atMs[call]!);
    arrivals[level] = (arrivals[level] ?? 0) + 1;
    if (!Number.isNaN(endMs[call]!)) level++;
  }
  const most = arrivals.length;
  const totalMs = timeMs.reduce((sum, ms) => sum + ms, 0);
  if (calls < 100 || totalMs <= 0 || isEven(atMs.subarray(0, calls))) return undefined;
  const open = calls * Math.log(calls / totalMs) - calls;
  let best: (ClosedLoop & { readonly fits: number }) | undefined;
  for (let clients = most; clients <= 4 * most; clients += Math.max(1, Math.floor(clients / 16))) {
    let [idleMs, logs] = [0, 0];
    for (let waiting = 0; waiting < Math.max(most, timeMs.length); waiting++) {
      idleMs += Math.max(0, clients - waiting) * (timeMs[waiting] ?? 0);
      logs += (arrivals[waiting] ?? 0) * Math.log(Math.max(1e-9, clients - waiting));
    }
    const thinkMs = Math.max(1e-3, idleMs / calls);
    const fits = logs - calls * Math.log(thinkMs) - idleMs / thinkMs;
    if (best === undefined || fits > best.fits) best = { clients, thinkMs, fits };
  }
  if (best === undefined || best.fits - open < Math.max(leastTotal, leastGain * calls)) return undefined;
  return { clients: best.clients, thinkMs: best.thinkMs <= 2e-3 ? 0 : best.thinkMs };
}

function isEven(atMs: Float64Array): boolean {
  const meanMs = (atMs.at(-1)! - atMs[0]!) / (atMs.length - 1);
  let squares = 0;
  for (let call = 1; call < atMs.length; call++) squares += (atMs[call]! - atMs[call - 1]! - meanMs) ** 2;
  return Math.sqrt(squares / (atMs.length - 1)) < mostEven * meanMs;
}
