import { noCounts } from "../../../cache/cache-counts.ts";
import { Problem } from "../../../problems/problem.ts";
import type { ModelStatistics, Duration } from "../../contract/model-statistics.ts";
import type { Models } from "../../models/models.ts";
import type { Deployment } from "../../models/deployment.ts";
import { onlyVersion, type ModelDefinition } from "../../contract/model-definition.ts";
import type { ModelState, ServedModel } from "../../models/served-model.ts";
import { packageVersion } from "../../../shared/version.ts";
import { inputTensors, metadataShape, outputTensors, type ProtocolTensor } from "./model-tensors.ts";

// The protocol's and Triton's descriptions of a model, apart from HTTP. Their documents:
// https://github.com/triton-inference-server/server/tree/main/docs/protocol

/** The name of a version in a path and in a reply. */
export const versionOf = (model: ServedModel | undefined): string => model?.definition.versionName ?? onlyVersion;

/** Refuses a version other than the one that serves. @throws {Problem} 404 */
export function checkVersion(name: string, serving: ServedModel | undefined, version: string | undefined): void {
  const served = versionOf(serving);
  if (version === undefined || version === served) return;
  const message = `${name} has no version ${JSON.stringify(version.slice(0, 100))}; there is "${served}".`;
  throw new Problem("MODEL_NOT_FOUND", message, { param: "version" });
}

export interface ProtocolTensors {
  readonly inputs: readonly ProtocolTensor[];
  readonly outputs: readonly ProtocolTensor[];
}

const known = new WeakMap<ModelDefinition, ProtocolTensors>();

/** A model's tensors, worked out once. */
export function tensorsOf({ definition }: ServedModel): ProtocolTensors {
  let tensors = known.get(definition);
  if (tensors === undefined) {
    tensors = { inputs: inputTensors(definition.input), outputs: outputTensors(definition.output) };
    known.set(definition, tensors);
  }
  return tensors;
}

export const serverMetadata = ({ repository }: Models): object => ({
  name: "sheaf",
  version: packageVersion(),
  extensions: [
    "binary_tensor_data",
    "model_configuration",
    ...(repository === undefined ? [] : ["model_repository"]),
    "schedule_policy",
    "statistics",
  ],
});

/** Whether `/v2/models/{model}/ready` says so. */
export const isReady = (models: Models, { state }: { readonly state: ModelState }): boolean =>
  state === "ready" && !models.isDraining;

export function metadataOf(model: ServedModel): object {
  const { inputs, outputs } = tensorsOf(model);
  const { note } = model.definition;
  const described = (tensors: readonly ProtocolTensor[]): object[] =>
    tensors.map((tensor) => ({ name: tensor.name, datatype: tensor.datatype, shape: metadataShape(tensor) }));
  return {
    name: model.name,
    versions: [versionOf(model)],
    platform: "sheaf",
    inputs: described(inputs),
    outputs: described(outputs),
    ...(note === undefined ? {} : { parameters: { note } }),
  };
}

/** The fields of Triton's ModelConfig that mean something here. `dims` are one item's. */
export function configOf(model: ServedModel): object {
  const { name, maxBatchSize, settings } = model;
  const { inputs, outputs } = tensorsOf(model);
  // Triton's way to say that axis 0 of the tensors is not a batch's.
  const isBatched = [...inputs, ...outputs].every(({ hasBatchAxis }) => hasBatchAxis);
  return {
    name,
    platform: "sheaf",
    backend: "sheaf",
    version_policy: { latest: { num_versions: 1 } },
    max_batch_size: isBatched ? maxBatchSize : 0,
    input: inputs.map(tensorConfig),
    output: outputs.map(tensorConfig),
    instance_group: [{ name, kind: "KIND_AUTO", count: settings.workers }],
    dynamic_batching: {
      max_queue_delay_microseconds: settings.maxWaitMs * 1000,
      default_queue_policy: {
        timeout_action: "REJECT",
        default_timeout_microseconds: settings.requestTimeoutMs * 1000,
        allow_timeout_override: true,
        max_queue_size: settings.queueMaxSize,
      },
    },
    model_transaction_policy: { decoupled: false },
  };
}

const tensorConfig = ({ name, datatype, shape }: ProtocolTensor): object => ({
  name,
  data_type: datatype === "BYTES" ? "TYPE_STRING" : `TYPE_${datatype}`,
  dims: shape.map((axis) => axis ?? -1),
});

/** Of models, as Triton's statistics extension has them; a run is compute_infer. */
export const statisticsOf = (models: readonly ServedModel[]): object => ({
  model_stats: models.map((model) => statisticOf(model)),
});

const statisticOf = (model: ServedModel): object => {
  const { name, statistics, cache } = model;
  return {
    name,
    version: versionOf(model),
    last_inference: statistics.lastAtMs,
    inference_count: statistics.items,
    execution_count: [...statistics.batches.values()].reduce((sum, { count }) => sum + count, 0),
    inference_stats: inferenceStats(statistics, cache?.counts),
    batch_stats: [...statistics.batches]
      .toSorted(([size], [other]) => size - other)
      .map(([size, runs]) => ({ batch_size: size, ...computeStats(runs) })),
    memory_usage: [],
  };
};

function inferenceStats({ success, fail, queue, withoutRun }: ModelStatistics, cache = noCounts()): object {
  const run = { count: success.count - withoutRun.count, ms: success.ms - withoutRun.ms - queue.ms };
  return {
    success: durationStat(success),
    fail: durationStat(fail),
    queue: durationStat(queue),
    ...computeStats(run),
    cache_hit: durationStat({ count: cache.hits, ms: cache.hitMs }),
    cache_miss: durationStat({ count: cache.misses, ms: cache.missMs }),
  };
}

/** A run includes the round trip to the worker. */
const computeStats = (run: Duration): object => ({
  compute_input: durationStat({ count: run.count, ms: 0 }),
  compute_infer: durationStat(run),
  compute_output: durationStat({ count: run.count, ms: 0 }),
});

const durationStat = ({ count, ms }: Duration): object => ({ count, ns: Math.max(0, Math.round(ms * 1e6)) });

/** Every model with its state in Triton's words, including unloaded models of a folder; with `readyOnly`, just the ready ones. */
export async function repositoryIndex(
  models: Models,
  { readyOnly }: { readonly readyOnly: boolean },
): Promise<IndexEntry[]> {
  const served = models.deployments
    .filter((deployment) => !readyOnly || isReady(models, deployment))
    .map((deployment) => ({
      name: deployment.name,
      version: versionOf(deployment.current),
      ...stateOf(models, deployment),
    }));
  const unloaded = readyOnly ? [] : ((await models.repository?.unloaded()) ?? []);
  return [...served, ...unloaded.map((name) => ({ name, version: "", state: "UNAVAILABLE", reason: "unloaded" }))];
}

interface IndexEntry {
  readonly name: string;
  readonly version: string;
  readonly state: string;
  readonly reason: string;
}

function stateOf(models: Models, deployment: Deployment): { readonly state: string; readonly reason: string } {
  const { state, reason = "" } = deployment;
  if (isReady(models, deployment)) return { state: "READY", reason };
  if (models.isDraining) return { state: "UNLOADING", reason: "the server is shutting down" };
  if (state === "loading") return { state: "LOADING", reason };
  return { state: "UNAVAILABLE", reason: reason || state };
}
