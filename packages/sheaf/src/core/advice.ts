import type { Busy } from "./busy.ts";
import type { Distribution } from "./histogram.ts";
import type { CostModel } from "./line-fit.ts";

/** What advice is derived from; see BatcherStats. */
export interface AdviceInput {
  readonly batches: number;
  readonly fillRate: number;
  readonly meanBatchSize: number;
  readonly queueWaitMs: Distribution;
  readonly runMs: Distribution;
  readonly costModel: CostModel | null;
  readonly speedup: number | null;
  readonly expectedSpeedup: number | null;
  /** Null where it is not known. */
  readonly busy: Busy | null;
}

const batchesNeeded = 50;

/** Sentences that say what the figures mean and what to do; none before 50 batches. */
export function advise(stats: AdviceInput): string[] {
  if (stats.batches < batchesNeeded) return [];
  return [overProvisioned, bottleneck, contention, slotBound, gainsNothing].flatMap((rule) => rule(stats) ?? []);
}

type Rule = (stats: AdviceInput) => string | undefined;

const overProvisioned: Rule = ({ fillRate, meanBatchSize }) =>
  fillRate > 0 && fillRate < 0.2
    ? `Batches are ${percent(fillRate)} full (mean ${meanBatchSize.toFixed(1)}): maxBatchSize is over-provisioned. It ` +
      "costs nothing as it is, but a lower one bounds run time and memory."
    : undefined;

const bottleneck: Rule = ({ fillRate }) =>
  fillRate > 0.95
    ? `Batches are ${percent(fillRate)} full: maxBatchSize is the bottleneck, raise it if the run allows.`
    : undefined;

/** Where little is to be gained, a few slow runs would look like contention. */
const contention: Rule = ({ speedup, expectedSpeedup }) =>
  speedup !== null && expectedSpeedup !== null && expectedSpeedup > 1.5 && speedup < 0.7 * expectedSpeedup
    ? `Speed-up is ${speedup.toFixed(1)} where the cost model expects ${expectedSpeedup.toFixed(1)}: runs contend for ` +
      "the same cores or connections. Lower concurrency."
    : undefined;

/** A hold or a rate limit makes items wait too, but leaves slots free. */
const slotBound: Rule = ({ queueWaitMs, runMs, busy }) =>
  busy !== null && busy.slotShare > 0.8 && busy.cpuCores < 0.5 && queueWaitMs.p50 > runMs.p50
    ? `Items wait ${queueWaitMs.p50.toFixed(1)} ms for runs of ${runMs.p50.toFixed(1)} ms: every slot is taken while this ` +
      `process idles (${percent(busy.cpuCores)} of a core). Raise concurrency, if what the runs wait for can take more.`
    : undefined;

const gainsNothing: Rule = ({ costModel, meanBatchSize, speedup }) =>
  costModel !== null &&
  meanBatchSize > 1.5 &&
  costModel.fixedMs < 0.05 * costModel.perItemMs &&
  (speedup === null || speedup < 1.1)
    ? `Do not batch: a run has no fixed part to share (${costModel.fixedMs.toFixed(3)} ms beside ` +
      `${costModel.perItemMs.toFixed(3)} ms an item), so batching gains nothing.`
    : undefined;

const percent = (share: number): string => `${Math.round(share * 100)} %`;
