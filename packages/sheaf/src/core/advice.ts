import type { CostModel } from "./line-fit.ts";

/** What advice is derived from; see BatcherStats. */
export interface AdviceInput {
  readonly batches: number;
  readonly fillRate: number;
  readonly meanBatchSize: number;
  readonly costModel: CostModel | null;
  readonly speedup: number | null;
  readonly expectedSpeedup: number | null;
}

const batchesNeeded = 50;

/** Sentences that say what the figures mean and what to do; none before 50 batches. */
export function advise(stats: AdviceInput): string[] {
  const { batches, fillRate, meanBatchSize, costModel, speedup, expectedSpeedup } = stats;
  const advice: string[] = [];
  if (batches < batchesNeeded) return advice;
  const percent = `${Math.round(fillRate * 100)} %`;
  if (fillRate > 0.95)
    advice.push(`Batches are ${percent} full: maxBatchSize is the bottleneck, raise it if the run allows.`);
  if (fillRate > 0 && fillRate < 0.2) {
    advice.push(`Batches are ${percent} full (mean ${meanBatchSize.toFixed(1)}): maxBatchSize is over-provisioned.`);
  }
  if (speedup !== null && expectedSpeedup !== null && speedup < 0.7 * expectedSpeedup) {
    advice.push(
      `Speed-up is ${speedup.toFixed(1)} where the cost model expects ${expectedSpeedup.toFixed(1)}: runs contend for ` +
        "the same cores or connections. Lower concurrency.",
    );
  }
  if (costModel !== null && meanBatchSize > 1.5 && costModel.fixedMs < 0.05 * costModel.perItemMs) {
    advice.push(
      `Do not batch: a run has no fixed part to share (${costModel.fixedMs.toFixed(3)} ms beside ` +
        `${costModel.perItemMs.toFixed(3)} ms an item), so batching gains nothing.`,
    );
  }
  return advice;
}
