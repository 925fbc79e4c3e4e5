import type { Batcher } from "../core/batcher.ts";
import type { BatcherStats } from "../core/observe/stats.ts";
import type { CostEstimate } from "../core/observe/verdict.ts";
import type { BatchRecord } from "../policies/policy.ts";
import { Buckets, secondsBuckets, sizeBuckets } from "./buckets.ts";
import { exposition, expositionContentType, type MetricFamily, type MetricSample } from "./exposition.ts";

/** What is read of a batcher. */
export type MeasuredBatcher = Pick<Batcher<never, unknown>, "name" | "stats" | "subscribe">;

/** The part of a prom-client Registry that is used. */
export interface RegistryLike {
  registerMetric(metric: never): void;
}

export interface PrometheusMetrics {
  readonly contentType: string;
  /** The text of a scrape. */
  text(): string;
  /** The same as data, to render beside metrics of your own. */
  families(): MetricFamily[];
  /** Adds the metrics to a prom-client registry (15 or newer), which reads them at every scrape. */
  register(registry: RegistryLike): void;
  /** Ends the subscriptions. */
  close(): void;
}

interface Measured {
  readonly batcher: MeasuredBatcher;
  readonly labels: Readonly<Record<string, string>>;
  readonly size: Buckets;
  readonly queueWait: Buckets;
  readonly run: Buckets;
  readonly end: () => void;
}

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
  return { batcher, labels: { batcher: batcher.name }, size, queueWait, run, end };
}

const gauge = (labels: Readonly<Record<string, string>>, value: number | null | undefined): MetricSample[] =>
  value === null || value === undefined ? [] : [{ labels, value }];

const table: readonly (Omit<MetricFamily, "samples"> & { readonly samples: Read })[] = [
  {
    name: "sheaf_items_total",
    help: "Items that have settled, by outcome.",
    type: "counter",
    samples: ({ labels }, { items }) =>
      Object.entries(items).map(([outcome, value]) => ({ labels: { ...labels, outcome }, value })),
  },
  {
    name: "sheaf_batches_total",
    help: "Batches that have run, by the reason they were sent.",
    type: "counter",
    samples: ({ labels }, { reasons }) =>
      Object.entries(reasons).map(([reason, value]) => ({ labels: { ...labels, reason }, value })),
  },
  {
    name: "sheaf_batch_size_items",
    help: "Items in a batch.",
    type: "histogram",
    samples: ({ labels, size }) => size.samples(labels),
  },
  {
    name: "sheaf_batch_fill_ratio",
    help: "Mean share of a batch that is filled: by items or by weight, whichever is more.",
    type: "gauge",
    samples: ({ labels }, { fillRate }) => gauge(labels, fillRate),
  },
  {
    name: "sheaf_queue_wait_seconds",
    help: "Arrival to dispatch of an item, at its batch's mean.",
    type: "histogram",
    samples: ({ labels, queueWait }) => queueWait.samples(labels),
  },
  {
    name: "sheaf_run_seconds",
    help: "Dispatch to results of a batch.",
    type: "histogram",
    samples: ({ labels, run }) => run.samples(labels),
  },
  {
    name: "sheaf_queue_items",
    help: "Items waiting now.",
    type: "gauge",
    samples: ({ labels }, { queued }) => gauge(labels, queued),
  },
  {
    name: "sheaf_in_flight_batches",
    help: "Batches running now.",
    type: "gauge",
    samples: ({ labels }, { inFlight }) => gauge(labels, inFlight),
  },
  {
    name: "sheaf_speedup_ratio",
    help: "Run time of recent items one by one over the run time they took, as estimated; absent until it can be.",
    type: "gauge",
    samples: ({ labels }, { verdict }) => gauge(labels, verdict.speedup),
  },
  {
    name: "sheaf_speedup_low_ratio",
    help: "Lower end of the 95 % range of the speed-up; absent while it is being measured.",
    type: "gauge",
    samples: ({ labels }, { verdict }) => gauge(labels, verdict.verdict === "measuring" ? null : verdict.low),
  },
  {
    name: "sheaf_speedup_high_ratio",
    help: "Upper end of the 95 % range of the speed-up; absent while it is being measured.",
    type: "gauge",
    samples: ({ labels }, { verdict }) => gauge(labels, verdict.verdict === "measuring" ? null : verdict.high),
  },
  {
    name: "sheaf_cost_total",
    help: "Cost of what has run, in the unit of the cost option.",
    type: "counter",
    samples: ({ labels }, { cost }) => gauge(labels, cost?.total),
  },
  {
    name: "sheaf_bisections_total",
    help: "Extra runs that isolated failing items.",
    type: "counter",
    samples: ({ labels }, { bisectRuns }) => gauge(labels, bisectRuns),
  },
  {
    name: "sheaf_scheduler_fixed_seconds",
    help: "Fixed part of a run in the fitted cost model.",
    type: "gauge",
    samples: ({ labels }, { costModel }) =>
      gauge(
        labels,
        ofRuns(costModel, (model) => model.fixedMs / 1000),
      ),
  },
  {
    name: "sheaf_scheduler_item_seconds",
    help: "Part of a run that each item adds in the fitted cost model.",
    type: "gauge",
    samples: ({ labels }, { costModel }) =>
      gauge(
        labels,
        ofRuns(costModel, (model) => model.perItemMs / 1000),
      ),
  },
  {
    name: "sheaf_scheduler_abandoned_runs_total",
    help: "Runs given up after runTimeoutMs.",
    type: "counter",
    samples: ({ labels }, { abandonedRuns }) => gauge(labels, abandonedRuns),
  },
];

/** Warm-up figures are left out: no label separates them from those of the traffic. */
function ofRuns(model: CostEstimate | null, figure: (model: CostEstimate) => number): number | null {
  return model?.basis === "runs" ? figure(model) : null;
}

/** One family in prom-client's shape. */
function valuesOf(name: string, families: readonly MetricFamily[]): object[] {
  const family = families.find((candidate) => candidate.name === name);
  return (family?.samples ?? []).map(({ labels, value, suffix = "" }) => ({
    labels,
    value,
    metricName: `${name}${suffix}`,
  }));
}
