import type { Limit } from "../../dashboard/observed.ts";
import { batchSizeLimit } from "../../dashboard/ticks.ts";
import { uncachedReason } from "../models/uncached-reason.ts";
import type { ServedModel } from "../models/served-model.ts";
import { runTimeoutOf, type Settings } from "../../settings/settings.ts";
import { roleOf } from "../../settings/role.ts";

/** Policy and limits in force for a model, in words: a model's own limits may be lower than the settings'. */
export function limitsOf(model: ServedModel): Limit[] {
  const { settings, maxBatchSize, workers, definition } = model;
  const { device } = definition;
  const { queueMaxSize, requestTimeoutMs } = settings;

  const batching = [
    { label: "Policy", value: policyInWords(settings) },
    batchSizeLimit(maxBatchSize),
    { label: "Wait with a slot free", value: `at most ${inWords(settings.maxWaitMs)}` },
  ];
  return [
    ...(roleOf(settings) === "gateway" ? [{ label: "Policy", value: "that of the fleet's workers" }] : batching),
    { label: "Queue", value: `at most ${queueMaxSize.toLocaleString("en")} items` },
    { label: "Answer", value: `within ${inWords(requestTimeoutMs)}` },
    { label: "Run", value: `within ${inWords(runTimeoutOf(settings))}` },
    ...(settings.cacheMaxBytes === 0 ? [] : [{ label: "Equal inputs", value: cacheInWords(model) }]),
    ...(workers === undefined ? [] : [{ label: "Workers", value: `${workers.slots} × ${settings.workerIsolation}` }]),
    ...(device === undefined ? [] : [{ label: "Device", value: device }]),
  ];
}

/** Whether results are kept, or why not. */
export function cacheInWords({ cache, definition, settings }: ServedModel): string {
  if (cache === undefined) return `run again: ${uncachedReason(definition, settings)}`;
  const age = cache.ttlMs === undefined ? "" : `, for ${inWords(cache.ttlMs)}`;
  return `answered from the cache${age}`;
}

function policyInWords(settings: Settings): string {
  const { schedulerStrategy: policy, latencyBudgetMs: ms } = settings;
  return policy === "auto" && ms !== undefined ? `auto, latency budget ${inWords(ms)}` : policy;
}

const inWords = (ms: number): string =>
  ms >= 1000 ? `${(ms / 1000).toLocaleString("en")} s` : `${ms.toLocaleString("en")} ms`;
