import type { Clock } from "sheaf";
import { Goodput, type Retries } from "sheaf/internal/tuning";
import { patientTarget } from "./patient-target.ts";
import { phasesOf, poissonArrivals, surgeOf, type Pattern, type Phase } from "./pattern.ts";
import { Recorder } from "./recorder.ts";
import type { LoadResult } from "./result.ts";
import type { Senders } from "./senders.ts";
import { succeeded, type Target } from "./target.ts";

export interface LoadOptions {
  readonly configuration: string;
  readonly target: Target;
  readonly clock: Clock;
  readonly pattern: Pattern;
  /** Of a trace: when each request leaves, from the start, in order. */
  readonly arrivalsMs?: Float64Array | undefined;
  /** Mean rate of an open pattern, in requests per second; > 0. */
  readonly ratePerS?: number | undefined;
  /** Callers of a closed loop; integer >= 1. Each sends its next request when the last one has ended. */
  readonly callers?: number | undefined;
  /** Measured span in milliseconds; > 0. */
  readonly durationMs: number;
  /** Time before it whose requests are sent but not counted. Default 0. */
  readonly warmUpMs?: number | undefined;
  /** A request without a reply this long after its intended time is given up and counts with that latency. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Turns each request into an operation of a client that gives up and retries; `timeoutMs` is then the time of the slowest
   * operation.
   */
  readonly retries?: Retries | undefined;
  /** Who sends each request; the result tells them apart. */
  readonly senders?: Senders | undefined;
  readonly seed?: number | undefined;
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
  /** Aborting it ends the run early; open requests are dropped uncounted and the promise rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface LoadProgress {
  /** Since the start, warm-up included. */
  readonly elapsedMs: number;
  readonly totalMs: number;
  readonly open: number;
}

interface Flight {
  readonly intendedAtMs: number;
  readonly sender: string | undefined;
  ended: boolean;
  cancel: () => void;
}

const tickMs = 1;
// Requests in flight are bounded by rate × timeout; beyond this the machine, not the server, would be under test.
const maxInFlight = 1_000_000;
// A share of 1 % of the requests that left this late is visible in a p99.
const toleratedLagMs = 10;

/**
 * Runs one pattern against a target. Open patterns send on schedule even if the server falls behind, and measure from the
 * intended send time: a server that stalls shows as latency, not as a gap. Retries nothing without `retries`.
 * @throws {RangeError} for options out of range.
 */
export function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { clock, pattern, durationMs, warmUpMs = 0, seed = 1, signal, ratePerS = 0, callers = 0, arrivalsMs } = options;
  const { retries, senders } = options;
  const clients = retries && patientTarget(options.target, retries, clock, seed ^ 0x1b873593);
  const target = clients ?? options.target;
  const timeoutMs = clients?.longestMs ?? options.timeoutMs ?? 10_000;
  validate({ ...options, warmUpMs, timeoutMs });
  const isDrawn = pattern !== "closed" && pattern !== "trace";
  const phases: Phase[] = isDrawn ? phasesOf(pattern, ratePerS, durationMs) : [];
  const recorder = new Recorder(durationMs, phases, senders?.names);
  const goodput = clients && new Goodput(surgeOf(phases));
  const totalMs = warmUpMs + durationMs;
  const arrivals = isDrawn ? schedule(phases, warmUpMs, ratePerS, seed) : arrivalsMs?.values();

  return new Promise((resolve, reject) => {
    const startAtMs = clock.now();
    const flights: Flight[] = [];
    let oldest = 0;
    let open = 0;
    let index = 0;
    let nextAtMs = arrivals === undefined ? Infinity : nextArrival(arrivals);
    let progressAtMs = 0;

    const elapsed = (): number => clock.now() - startAtMs;

    function send(intendedAtMs: number): void {
      const measured = intendedAtMs >= warmUpMs;
      const sender = senders?.names[senders.nameAt(index)];
      if (measured) {
        recorder.wasSent(intendedAtMs - warmUpMs, Math.max(0, elapsed() - intendedAtMs), sender);
        goodput?.begun(intendedAtMs - warmUpMs);
      }
      const flight: Flight = { intendedAtMs, sender, ended: false, cancel: () => undefined };
      flights.push(flight);
      open++;
      flight.cancel = target.send(index++, ({ status, body }) => end(flight, elapsed(), status, body));
    }

    function end(flight: Flight, atMs: number, status: number | string, body?: string): void {
      flight.ended = true;
      open--;
      const intendedAtMs = flight.intendedAtMs - warmUpMs;
      if (intendedAtMs >= 0) {
        recorder.ended(intendedAtMs, atMs - flight.intendedAtMs, status, body, flight.sender);
        if (succeeded(status)) goodput?.answered(atMs - warmUpMs);
      }
      // A closed loop's caller sends again at once.
      if (pattern === "closed" && atMs < totalMs && !stopped) send(atMs);
    }

    let stopped = false;
    function tick(): void {
      if (stopped) return;
      const nowMs = elapsed();
      while (nextAtMs <= nowMs) {
        send(nextAtMs);
        nextAtMs = nextArrival(arrivals!);
      }
      giveUpLate(nowMs);
      if (nowMs >= progressAtMs) {
        progressAtMs = nowMs + 100;
        options.onProgress?.({ elapsedMs: Math.min(nowMs, totalMs), totalMs, open });
      }
      if (nowMs >= totalMs && nextAtMs === Infinity && open === 0) return finish();
      clock.after(tickMs, tick);
    }

    function giveUpLate(nowMs: number): void {
      for (; oldest < flights.length; oldest++) {
        const flight = flights[oldest]!;
        if (flight.ended) continue;
        if (nowMs - flight.intendedAtMs < timeoutMs) break;
        flight.cancel();
        end(flight, flight.intendedAtMs + timeoutMs, "timeout");
      }
      if (oldest > 1024 && oldest * 2 > flights.length) {
        flights.splice(0, oldest);
        oldest = 0;
      }
    }

    function finish(): void {
      stopped = true;
      signal?.removeEventListener("abort", onAbort);
      const result = resultOf({ ...options, target, warmUpMs, timeoutMs, seed }, recorder);
      resolve(clients === undefined ? result : { ...result, goodput: goodput!.result(index, clients.attempts) });
    }

    function onAbort(): void {
      stopped = true;
      for (const flight of flights) if (!flight.ended) flight.cancel();
      reject(signal!.reason as Error);
    }

    if (signal?.aborted) return onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    for (let i = 0; i < callers && pattern === "closed"; i++) send(0);
    tick();
  });
}

/** Warm-up at the mean rate, then the pattern; milliseconds from the start of the warm-up. */
function* schedule(phases: readonly Phase[], warmUpMs: number, ratePerS: number, seed: number): Generator<number> {
  if (warmUpMs > 0) yield* poissonArrivals(phasesOf("steady", ratePerS, warmUpMs), seed + 1);
  for (const atMs of poissonArrivals(phases, seed)) yield warmUpMs + atMs;
}

function nextArrival(arrivals: Iterator<number>): number {
  const next = arrivals.next();
  return next.done === true ? Infinity : next.value;
}

function resultOf(
  options: LoadOptions & { warmUpMs: number; timeoutMs: number; seed: number },
  recorder: Recorder,
): LoadResult {
  const { sendLag, statuses } = recorder;
  const requests = recorder.sent;
  const ok = Object.entries(statuses).reduce((sum, [status, count]) => sum + (/^2\d\d$/.test(status) ? count : 0), 0);
  const sendLagMs = { p50: sendLag.quantile(0.5), p99: sendLag.quantile(0.99), max: sendLag.max };
  return {
    configuration: options.configuration,
    pattern: options.pattern,
    seed: options.seed,
    warmUpMs: options.warmUpMs,
    durationMs: options.durationMs,
    timeoutMs: options.timeoutMs,
    offeredPerS: recorder.offeredPerS,
    achievedPerS: recorder.achievedPerS,
    requests,
    ok,
    successRate: requests === 0 ? 0 : ok / requests,
    latencyMs: recorder.latencyMs,
    sendLagMs,
    waitedForConnection: options.target.waited,
    statuses,
    lastErrorBody: recorder.lastErrorBody,
    saturated:
      sendLagMs.p99 > toleratedLagMs
        ? `send lag p99 ${sendLagMs.p99.toFixed(1)} ms, above ${toleratedLagMs} ms: these latencies are the generator's too`
        : undefined,
    without: recorder.without,
    series: recorder.series,
    phases: recorder.phaseResults,
    ...(options.senders !== undefined && { tenants: recorder.senderResults }),
  };
}

function validate({
  pattern,
  ratePerS,
  callers,
  durationMs,
  warmUpMs = 0,
  timeoutMs = 0,
  arrivalsMs,
}: LoadOptions): void {
  const positive = (name: string, value: number | undefined): number => {
    if (typeof value === "number" && value > 0 && Number.isFinite(value)) return value;
    throw new RangeError(`${name} must be a finite number > 0, got ${JSON.stringify(value) ?? "undefined"}`);
  };
  positive("durationMs", durationMs);
  positive("timeoutMs", timeoutMs);
  if (!(warmUpMs >= 0 && Number.isFinite(warmUpMs))) {
    throw new RangeError(`warmUpMs must be a finite number >= 0, got ${JSON.stringify(warmUpMs)}`);
  }
  if (pattern === "closed") {
    if (!Number.isInteger(callers) || callers! < 1 || callers! > maxInFlight) {
      throw new RangeError(
        `callers must be an integer from 1 to ${maxInFlight}, got ${JSON.stringify(callers) ?? "undefined"}`,
      );
    }
    return;
  }
  // The highest rate of any drawn pattern is three times its mean.
  const inFlight =
    pattern === "trace" ? mostWithin(timeoutMs, arrivalsMs!) : (3 * positive("ratePerS", ratePerS) * timeoutMs) / 1000;
  if (inFlight > maxInFlight) {
    throw new RangeError(
      `rate and timeoutMs allow ${Math.round(inFlight)} requests in flight (at most ${maxInFlight}): lower one of them`,
    );
  }
}

/** The most arrivals in any span of this length. */
function mostWithin(spanMs: number, arrivalsMs: Float64Array): number {
  let [most, first] = [0, 0];
  for (let last = 0; last < arrivalsMs.length; last++) {
    while (arrivalsMs[last]! - arrivalsMs[first]! > spanMs) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
