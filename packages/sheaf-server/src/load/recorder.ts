import { Histogram } from "sheaf/internal/metrics";
import type { Phase } from "./pattern.ts";
import type { LatencyMs, LoadResult, PhaseResult, SenderResult, SeriesPoint } from "./result.ts";
import { succeeded } from "./target.ts";

const maxPoints = 120;
/** Parts of a run that are left out in turn to estimate the error of its quantiles. */
const parts = 10;
/** With fewer parts the error cannot be estimated. */
const fewestParts = 5;

interface Slot {
  readonly latency: Histogram;
  latencySumMs: number;
  timed: number;
  scheduled: number;
  ended: number;
  completed: number;
  ok: number;
}

const newSlot = (): Slot => ({
  latency: new Histogram(),
  latencySumMs: 0,
  timed: 0,
  scheduled: 0,
  ended: 0,
  completed: 0,
  ok: 0,
});

/** Collects one run in constant memory: as a whole, per slice of time, and per phase of the pattern. */
export class Recorder {
  readonly #durationMs: number;
  readonly #sliceMs: number;
  readonly #phases: readonly Phase[];
  readonly #slices: Slot[];
  readonly #labels = new Map<string, Slot & { lengthMs: number }>();
  readonly #all = newSlot();
  readonly #senders: ReadonlyMap<string, Slot>;
  readonly #sendLag = new Histogram();
  readonly #statuses = new Map<string, number>();
  #lastBody: string | undefined;
  #sent = 0;
  #phase = 0;

  /** `phases` in order of time, without gaps; empty for a closed loop. `senders`: names of those to tell apart. */
  constructor(durationMs: number, phases: readonly Phase[], senders: readonly string[] = []) {
    this.#senders = new Map(senders.map((name) => [name, newSlot()]));
    this.#durationMs = durationMs;
    // At least 250 ms a slice: shorter ones hold too few requests for a p99.
    const slices = Math.max(1, Math.min(maxPoints, Math.floor(durationMs / 250)));
    this.#sliceMs = durationMs / slices;
    this.#slices = Array.from({ length: slices }, newSlot);
    this.#phases = phases;
    for (const { label, startAtMs, endAtMs } of phases) {
      const slot = this.#labels.get(label) ?? { ...newSlot(), lengthMs: 0 };
      slot.lengthMs += endAtMs - startAtMs;
      this.#labels.set(label, slot);
    }
  }

  get sent(): number {
    return this.#sent;
  }

  get sendLag(): Histogram {
    return this.#sendLag;
  }

  /** A request that was to leave at `intendedAtMs` left `lagMs` later. Times from the start of the measured span. */
  wasSent(intendedAtMs: number, lagMs: number, sender?: string): void {
    this.#sent++;
    this.#sendLag.record(lagMs);
    for (const slot of this.#slotsAt(intendedAtMs, sender)) slot.scheduled++;
  }

  /**
   * Records the end of a request; `latencyMs` counts from its intended send time. A request that is refused or fails early has no
   * latency, because a server that answers 429 in a millisecond is not a fast one.
   */
  ended(
    intendedAtMs: number,
    latencyMs: number,
    status: number | string,
    body: string | undefined,
    sender?: string,
  ): void {
    const name = String(status);
    this.#statuses.set(name, (this.#statuses.get(name) ?? 0) + 1);
    const ok = succeeded(status);
    if (!ok) this.#lastBody = body ?? this.#lastBody;
    for (const slot of this.#slotsAt(intendedAtMs, sender)) {
      slot.ended++;
      if (ok) slot.ok++;
      if (!ok && status !== "timeout") continue;
      slot.latency.record(latencyMs);
      slot.latencySumMs += latencyMs;
      slot.timed++;
    }
    const endedAtMs = intendedAtMs + latencyMs;
    if (!ok || endedAtMs >= this.#durationMs) return;
    for (const slot of this.#slotsAt(endedAtMs, sender)) slot.completed++;
  }

  get statuses(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#statuses].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  get lastErrorBody(): string | undefined {
    return this.#lastBody;
  }

  get latencyMs(): LatencyMs {
    return summary(this.#all);
  }

  get offeredPerS(): number {
    return (1000 * this.#all.scheduled) / this.#durationMs;
  }

  /** Successes that ended within the measured span, a second: requests still open at its end do not count. */
  get achievedPerS(): number {
    return (1000 * this.#all.completed) / this.#durationMs;
  }

  get series(): SeriesPoint[] {
    return this.#slices.map((slot, i) => ({ atMs: (i + 0.5) * this.#sliceMs, ...figures(slot, this.#sliceMs) }));
  }

  /** The run's quantiles without each tenth of its time in turn; none for a run too short for that. */
  get without(): LoadResult["without"] {
    const count = Math.min(parts, this.#slices.length);
    if (count < fewestParts) return [];
    return Array.from({ length: count }, (_, part) => {
      const rest = new Histogram();
      this.#slices.forEach(({ latency }, i) => {
        if (Math.floor((i * count) / this.#slices.length) !== part) rest.add(latency);
      });
      return { p50: rest.quantile(0.5), p99: rest.quantile(0.99) };
    });
  }

  get phaseResults(): PhaseResult[] {
    return [...this.#labels].map(([label, slot]) => ({ label, ...figures(slot, slot.lengthMs) }));
  }

  get senderResults(): Readonly<Record<string, SenderResult>> {
    return Object.fromEntries(
      [...this.#senders].map(([name, slot]) => {
        const { scheduled: requests, ok } = slot;
        return [name, { requests, ok, ...figures(slot, this.#durationMs) }] as const;
      }),
    );
  }

  /** Everything that a moment belongs to: the whole, its slice, and its phase and its sender where there is one. */
  #slotsAt(ms: number, sender: string | undefined): Slot[] {
    const last = this.#slices.length - 1;
    const slice = this.#slices[Math.max(0, Math.min(last, Math.floor(ms / this.#sliceMs)))]!;
    const phase = this.#labels.get(this.#labelAt(ms));
    const slots = phase === undefined ? [this.#all, slice] : [this.#all, slice, phase];
    if (sender !== undefined) slots.push(this.#senders.get(sender)!);
    return slots;
  }

  /** Phases are few and times nearly in order: a step from the last one found is enough. */
  #labelAt(ms: number): string {
    if (this.#phases.length === 0) return "";
    while (this.#phase > 0 && ms < this.#phases[this.#phase]!.startAtMs) this.#phase--;
    while (this.#phase < this.#phases.length - 1 && ms >= this.#phases[this.#phase]!.endAtMs) this.#phase++;
    return this.#phases[this.#phase]!.label;
  }
}

function figures(slot: Slot, lengthMs: number): Omit<SeriesPoint, "atMs"> {
  return {
    offeredPerS: (1000 * slot.scheduled) / lengthMs,
    achievedPerS: (1000 * slot.completed) / lengthMs,
    // Of the requests due here; 1 where none was.
    successRate: slot.ended === 0 ? 1 : slot.ok / slot.ended,
    latencyMs: summary(slot),
  };
}

const summary = ({ latency, latencySumMs, timed }: Slot): LatencyMs => ({
  mean: timed === 0 ? 0 : latencySumMs / timed,
  p50: latency.quantile(0.5),
  p75: latency.quantile(0.75),
  p90: latency.quantile(0.9),
  p95: latency.quantile(0.95),
  p99: latency.quantile(0.99),
  p999: latency.quantile(0.999),
  max: latency.max,
});
