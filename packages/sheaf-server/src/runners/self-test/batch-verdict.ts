import type { SelfTest } from "sheaf/models";
import type { ModelSpec, RunnerSettings } from "../contract/model-spec.ts";

/** How a model is served after its self-test, and the note about it. */
export type BatchVerdict = Pick<ModelSpec, "selfTest" | "maxBatchSize" | "warning">;

/** The consequence of a self-test, by the setting BATCH_DEPENDENT. */
export function batchVerdict(
  selfTest: SelfTest,
  { batchDependent = "single" }: Pick<RunnerSettings, "batchDependent">,
): BatchVerdict {
  const { verdict, differenceRate } = selfTest;
  const isDependent = verdict === "dependent";
  const isOneByOne =
    batchDependent === "exact"
      ? isDependent || verdict === "slightly-dependent"
      : isDependent && batchDependent === "single";
  const maxBatchSize = isOneByOne ? 1 : undefined;
  if (verdict === "independent") return { selfTest: verdict };
  if (verdict === "not-deterministic")
    return {
      selfTest: verdict,
      warning: `It is not deterministic: an item that ran alone several times gave different results (${differenceText(differenceRate)}). So the self-test cannot say whether results depend on the batch.`,
    };
  const what =
    verdict === "slightly-dependent"
      ? `Its results depend on their batch-mates: in a batch they differ by up to ${percent(differenceRate)}, as those of dynamically quantised models do.`
      : `Its results depend on their batch-mates: in a batch they differ from those of single items (${differenceText(differenceRate)}).`;
  const how =
    batchDependent === "exact"
      ? "So items run one by one (BATCH_DEPENDENT=exact)."
      : isOneByOne
        ? "So items run one by one; BATCH_DEPENDENT=batch runs them in batches all the same."
        : isDependent
          ? "Items run in batches all the same (BATCH_DEPENDENT=batch)."
          : "BATCH_DEPENDENT=exact runs items one by one.";
  return { selfTest: verdict, maxBatchSize, warning: `${what} ${how}` };
}

const percent = (rate: number): string => `${Number((rate * 100).toPrecision(2))} %`;

const differenceText = (rate: number): string =>
  rate === Infinity ? "whole numbers, texts or lengths change" : `by up to ${percent(rate)}`;
