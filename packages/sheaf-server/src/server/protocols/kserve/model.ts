import { messageOf, Problem } from "../../http/problem.ts";
import type { ModelStatistics, Duration } from "../../models/model-statistics.ts";
import type { Models } from "../../models/models.ts";
import type { ServedModel } from "../../models/served-model.ts";
import { inputTensors, metadataShape, outputTensors, type ProtocolTensor } from "./model-tensors.ts";

// What the protocol and Triton's extensions say of a model, apart from HTTP. Their documents:
// https://github.com/triton-inference-server/server/tree/main/docs/protocol

/** The one version of every model. */
export const modelVersion = "1";

/** The model of that name. @throws {Problem} 404, also for a version other than "1". */
export function findModel(models: Models, name: string, version: string = modelVersion): ServedModel {
  const model = models.find(name, "model");
  if (version === modelVersion) return model;
  const message = `${name} has no version ${JSON.stringify(version.slice(0, 100))}; there is "${modelVersion}".`;
  throw new Problem("MODEL_NOT_FOUND", message, { param: "version" });
}

export interface ModelTensors {
  readonly inputs: readonly ProtocolTensor[];
  readonly outputs: readonly ProtocolTensor[];
}

export const tensorsOf = ({ definition: { input, output } }: ServedModel): ModelTensors => ({
  inputs: inputTensors(input),
  outputs: outputTensors(output),
});

/** Whether `/v2/models/{model}/ready` says so. */
export const isReady = (models: Models, { state }: ServedModel): boolean => state === "ready" && !models.isDraining;

export function metadataOf(model: ServedModel): object {
  const { inputs, outputs } = tensorsOf(model);
  const { note } = model.definition;
  const described = (tensors: readonly ProtocolTensor[]): object[] =>
    tensors.map((tensor) => ({ name: tensor.name, datatype: tensor.datatype, shape: metadataShape(tensor) }));
  return {
    name: model.name,
    versions: [modelVersion],
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

/** Of models, as Triton's statistics extension has them; a run is compute_infer, and nothing is cached. */
export const statisticsOf = (models: readonly ServedModel[]): object => ({
  model_stats: models.map(({ name, statistics }) => ({
    name,
    version: modelVersion,
    last_inference: statistics.lastAtMs,
    inference_count: statistics.items,
    execution_count: [...statistics.batches.values()].reduce((sum, { count }) => sum + count, 0),
    inference_stats: inferenceStats(statistics),
    batch_stats: [...statistics.batches]
      .toSorted(([size], [other]) => size - other)
      .map(([size, runs]) => ({ batch_size: size, ...computeStats(runs) })),
    memory_usage: [],
  })),
});

function inferenceStats({ success, fail, queue }: ModelStatistics): object {
  const run = { count: success.count, ms: success.ms - queue.ms };
  return {
    success: durationStat(success),
    fail: durationStat(fail),
    queue: durationStat(queue),
    ...computeStats(run),
    cache_hit: durationStat({ count: 0, ms: 0 }),
    cache_miss: durationStat({ count: 0, ms: 0 }),
  };
}

/** What goes to a worker and back is part of a run. */
const computeStats = (run: Duration): object => ({
  compute_input: durationStat({ count: run.count, ms: 0 }),
  compute_infer: durationStat(run),
  compute_output: durationStat({ count: run.count, ms: 0 }),
});

const durationStat = ({ count, ms }: Duration): object => ({ count, ns: Math.max(0, Math.round(ms * 1e6)) });

/** Every model and its state in Triton's words, or those that are ready. */
export const indexOf = (models: Models, { readyOnly }: { readonly readyOnly: boolean }): object[] =>
  models.all
    .filter((model) => !readyOnly || isReady(models, model))
    .map((model) => ({ name: model.name, version: modelVersion, ...stateOf(models, model) }));

function stateOf(models: Models, model: ServedModel): { readonly state: string; readonly reason: string } {
  if (isReady(models, model)) return { state: "READY", reason: "" };
  if (models.isDraining) return { state: "UNLOADING", reason: "the server is shutting down" };
  if (model.state === "loading") return { state: "LOADING", reason: "" };
  return { state: "UNAVAILABLE", reason: model.failure === undefined ? model.state : messageOf(model.failure) };
}
