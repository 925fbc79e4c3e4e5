import type { Batcher } from "../core/contract/batcher.ts";
import type { RateLimitFigures } from "../core/contract/rate-limit.ts";
import type { BatchRecord } from "../policies/policy.ts";
import { Buckets, secondsBuckets, sizeBuckets } from "./buckets.ts";
import { exposition, expositionContentType, type MetricFamily, type MetricSample } from "./exposition.ts";
import type { BatcherStats, CostEstimate, LaneStats } from "../core/contract/stats.ts";

export type MeasuredBatcher = Pick<Batcher<never, unknown>, "name" | "stats" | "subscribe">;

/** The part of a prom-client Registry that is used. */
export interface RegistryLike {
  registerMetric(metric: never): void;
}

export interface PrometheusMetrics {
  readonly contentType: string;
  text(): string;
  /** The same as data, to render beside metrics of your own. */
  families(): MetricFamily[];
  /** Adds the metrics to a prom-client registry (15 or newer), which reads them at every scrape. */
  register(registry: RegistryLike): void;
  close(): void;
}

interface Measured {
  readonly batcher: MeasuredBatcher;
  readonly labels: Readonly<Record<string, string>>;
  readonly size: Buckets;
  readonly queueWait: Buckets;
  readonly run: Buckets;
  /** The highest value of each count that may decrease: a counter never does. */
  readonly most: Map<string, number>;
  readonly end: () => void;
}

const limitKinds = ["runs", "items", "weight", "input", "output"] as const;
type LimitKind = (typeof limitKinds)[number];

type Read = (measured: Measured, stats: BatcherStats) => readonly MetricSample[];

/**
 * Prometheus metrics of batchers, from counters and histograms that cost a few additions per batch and nothing per item.
 * Queue waits are counted at the mean of each batch, once per item: sum and count are exact, buckets nearly.
 * @throws {TypeError} when two batchers have one name: their series would be one.
 */
export function prometheusMetrics(batchers: readonly MeasuredBatcher[]): PrometheusMetrics {
  const names = batchers.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new TypeError(`Two batchers are named "${twice}"; give each its own \`name\`.`);
  const measured = batchers.map((batcher) => measure(batcher));
  const families = (): MetricFamily[] => {
    const read = measured.map((one) => [one, one.batcher.stats()] as const);
    return table.map(({ samples, ...family }) => ({
      ...family,
      samples: read.flatMap(([one, stats]) => samples(one, stats)),
    }));
  };
  return {
    contentType: expositionContentType,
    text: () => exposition(families()),
    families,
    register: (registry) => {
      for (const { name, help, type } of table) {
        const get = (): object => ({ name, help, type, aggregator: "sum", values: valuesOf(name, families()) });
        registry.registerMetric({ name, help, type, aggregator: "sum", get, reset: () => undefined } as never);
      }
    },
    close: () => {
      for (const { end } of measured) end();
    },
  };
}

function measure(batcher: MeasuredBatcher): Measured {
  const size = new Buckets(sizeBuckets);
  const queueWait = new Buckets(secondsBuckets);
  const run = new Buckets(secondsBuckets);
  const end = batcher.subscribe((record: BatchRecord) => {
    size.record(record.size);
    queueWait.record(record.queueWaitMs.mean / 1000, record.size);
    run.record(record.runMs / 1000);
  });
  return { batcher, labels: { batcher: batcher.name }, size, queueWait, run, most: new Map(), end };
}

function risen({ most }: Measured, of: string, value: number): number {
  const risenTo = Math.max(most.get(of) ?? 0, value);
  most.set(of, risenTo);
  return risenTo;
}

type Row = Omit<MetricFamily, "samples"> & { readonly samples: Read };

/** A figure of `stats()`; no sample while it is absent. */
const figure =
  (type: "counter" | "gauge") =>
  (name: string, help: string, of: (stats: BatcherStats) => number | null | undefined): Row => ({
    name,
    help,
    type,
    samples: ({ labels }, stats) => {
      const value = of(stats);
      return value === null || value === undefined ? [] : [{ labels, value }];
    },
  });
const counter = figure("counter");
const gauge = figure("gauge");

/** Counts of `stats()`, labelled by kind. */
const counts = (
  name: string,
  help: string,
  label: string,
  of: (stats: BatcherStats) => Readonly<Record<string, number>>,
): Row => ({
  name,
  help,
  type: "counter",
  samples: ({ labels }, stats) =>
    Object.entries(of(stats)).map(([kind, value]) => ({ labels: { ...labels, [label]: kind }, value })),
});

/** Figures of live and of bulk calls, labelled by kind; no samples until both have occurred. */
const ofLanes = (
  type: "counter" | "gauge" | "summary",
  name: string,
  help: string,
  label: string | undefined,
  of: (lane: LaneStats) => Readonly<Record<string, number>>,
): Row => ({
  name,
  help,
  type,
  samples: (measured, { lanes }) =>
    Object.entries(lanes ?? {}).flatMap(([lane, figures]: [string, LaneStats]) =>
      Object.entries(of(figures)).map(([kind, value]) => ({
        labels: { ...measured.labels, lane, ...(label !== undefined && { [label]: kind }) },
        value: type === "counter" ? risen(measured, `${lane} ${kind}`, value) : value,
      })),
    ),
});

const histogram = (name: string, help: string, of: (measured: Measured) => Buckets): Row => ({
  name,
  help,
  type: "histogram",
  samples: (measured) => of(measured).samples(measured.labels),
});

/** A figure of each limit of `stats().rateLimit`; no sample while the limit is unknown. */
const ofLimits = (
  type: "counter" | "gauge",
  name: string,
  help: string,
  of: (figures: RateLimitFigures, measured: Measured, kind: LimitKind) => number | null,
): Row => ({
  name,
  help,
  type,
  samples: (measured, { rateLimit }) =>
    limitKinds.flatMap((kind) => {
      const figures = rateLimit?.[kind];
      const value = figures === undefined ? null : of(figures, measured, kind);
      return value === null ? [] : [{ labels: { ...measured.labels, kind }, value }];
    }),
});

const table: readonly Row[] = [
  counts("sheaf_items_total", "Items that have settled, by outcome.", "outcome", ({ items }) => items),
  counts(
    "sheaf_batches_total",
    "Batches that have run, by the reason they were sent.",
    "reason",
    ({ reasons }) => reasons,
  ),
  histogram("sheaf_batch_size_items", "Items in a batch.", ({ size }) => size),
  gauge(
    "sheaf_batch_fill_ratio",
    "Mean share of a batch that is filled: by items or by weight, whichever is more.",
    ({ fillRate }) => fillRate,
  ),
  histogram(
    "sheaf_queue_wait_seconds",
    "Arrival to dispatch of an item, at its batch's mean.",
    ({ queueWait }) => queueWait,
  ),
  histogram("sheaf_run_seconds", "Dispatch to results of a batch.", ({ run }) => run),
  gauge("sheaf_queue_items", "Items waiting now.", ({ queued }) => queued),
  ofLanes("gauge", "sheaf_lane_queue_items", "Items waiting now, by lane.", undefined, ({ queued }) => ({ queued })),
  ofLanes(
    "counter",
    "sheaf_lane_items_total",
    "Items that went into a batch or were refused, by lane.",
    "outcome",
    ({ dispatched, rejected }) => ({ dispatched, rejected }),
  ),
  ofLanes(
    "summary",
    "sheaf_lane_latency_seconds",
    "Arrival to result in the last minute, by lane.",
    "quantile",
    ({ latencyMs: { p50, p99 } }) => ({ 0.5: p50 / 1000, 0.99: p99 / 1000 }),
  ),
  gauge(
    "sheaf_bulk_oldest_seconds",
    "Age of the oldest bulk item that waits; 0 without one.",
    ({ lanes }) => lanes && lanes.bulk.oldestMs / 1000,
  ),
  gauge(
    "sheaf_overload_seconds",
    "For how long standing overload has let the newest items go first; 0 without.",
    ({ overload }) => (overload === null ? 0 : overload.forMs / 1000),
  ),
  gauge("sheaf_in_flight_batches", "Batches running now.", ({ inFlight }) => inFlight),
  gauge(
    "sheaf_concurrency_batches",
    "Batches that may run at once now: learned from their run times where no number is set.",
    ({ concurrency }) => concurrency?.now,
  ),
  gauge(
    "sheaf_speedup_ratio",
    "Run time of recent items one by one over the run time they took, as estimated; absent until it can be.",
    ({ verdict }) => verdict.speedup,
  ),
  gauge(
    "sheaf_speedup_low_ratio",
    "Lower end of the 95 % range of the speed-up; absent while it is being measured.",
    ({ verdict }) => (verdict.verdict === "measuring" ? null : verdict.low),
  ),
  gauge(
    "sheaf_speedup_high_ratio",
    "Upper end of the 95 % range of the speed-up; absent while it is being measured.",
    ({ verdict }) => (verdict.verdict === "measuring" ? null : verdict.high),
  ),
  gauge(
    "sheaf_slots_needed",
    "Slots that answer 99 % of the items by their deadline, for the busiest five seconds of the last minute; absent until known.",
    ({ slotsNeeded }) => slotsNeeded?.slots,
  ),
  gauge(
    "sheaf_slots_needed_low",
    "The same for the mean rate of the last minute.",
    ({ slotsNeeded }) => slotsNeeded?.low,
  ),
  gauge(
    "sheaf_slots_needed_high",
    "The same for the busiest second of the last minute.",
    ({ slotsNeeded }) => slotsNeeded?.high,
  ),
  counter(
    "sheaf_cost_total",
    "Cost of the runs so far, in the currency of the price option.",
    ({ cost }) => cost?.total,
  ),
  counter("sheaf_bisections_total", "Extra runs that isolated failing items.", ({ bisectRuns }) => bisectRuns),
  gauge("sheaf_scheduler_fixed_seconds", "Fixed part of a run in the fitted cost model.", ({ costModel }) =>
    ofRuns(costModel, ({ fixedMs }) => fixedMs / 1000),
  ),
  gauge(
    "sheaf_scheduler_item_seconds",
    "Part of a run that each item adds in the fitted cost model.",
    ({ costModel }) => ofRuns(costModel, ({ perItemMs }) => perItemMs / 1000),
  ),
  counter(
    "sheaf_scheduler_abandoned_runs_total",
    "Runs given up after runTimeoutMs.",
    ({ abandonedRuns }) => abandonedRuns,
  ),
  gauge(
    "sheaf_scheduler_hung_runs",
    "Runs given up that have not ended; calls are refused while they take every slot.",
    ({ hungRuns }) => hungRuns,
  ),
  ofLimits(
    "gauge",
    "sheaf_rate_limit_per_minute",
    "Rate limit believed, in a minute, by kind; absent while none is known.",
    ({ perMinute }) => perMinute,
  ),
  ofLimits(
    "gauge",
    "sheaf_rate_limit_left",
    "Room under the rate limit now, by kind; negative for a debt.",
    ({ left }) => left,
  ),
  ofLimits(
    "counter",
    "sheaf_rate_limit_used_total",
    "Runs, items, weight and tokens of input and output counted on the rate limit, by kind.",
    ({ used }, measured, kind) => risen(measured, kind, used),
  ),
  gauge(
    "sheaf_rate_limit_share_ratio",
    "This process's part of a rate limit that processes divide; 1 without others.",
    ({ rateLimit }) => rateLimit?.share,
  ),
  counter(
    "sheaf_rate_limit_refusals_total",
    "Runs that the service refused for their rate.",
    ({ rateLimit }) => rateLimit?.refused,
  ),
  counter(
    "sheaf_rate_limit_pause_seconds_total",
    "Time in which nothing was sent because the service asked for it.",
    ({ rateLimit }) => rateLimit && rateLimit.pausedMs / 1000,
  ),
];

/** Warm-up figures are left out: no label separates them from those of the traffic. */
function ofRuns(model: CostEstimate | null, figure: (model: CostEstimate) => number): number | null {
  return model?.basis === "runs" ? figure(model) : null;
}

function valuesOf(name: string, families: readonly MetricFamily[]): object[] {
  const family = families.find((candidate) => candidate.name === name);
  return (family?.samples ?? []).map(({ labels, value, suffix = "" }) => ({
    labels,
    value,
    metricName: `${name}${suffix}`,
  }));
}
