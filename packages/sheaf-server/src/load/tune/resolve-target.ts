import type { Executor } from "sheaf";
import { seededRandom } from "sheaf/internal/tuning";
import { devicesOf } from "../../runners/contract/devices.ts";
import { workersOn } from "../../runners/workers/workers-on.ts";
import type { ModelInput, ModelSpec, RunnerSettings } from "../../runners/contract/model-spec.ts";
import type { BatchVerdict } from "../../runners/self-test/batch-verdict.ts";
import { sampleCount } from "../../runners/self-test/module-sample-worker.ts";
import { samplerFor, samplerOf, type Sampler } from "../../runners/self-test/sample-items.ts";
import { testOn } from "../../runners/self-test/module-trial.ts";
import { resolveModel } from "../../runners/resolve-model.ts";
import { CommandFailure, UsageError, usage } from "../../shared/failure.ts";
import { itemsFromTemplate, wordsItem } from "../payload.ts";
import type { TuneTarget } from "./target.ts";
import { urlBatches } from "./url-batches.ts";

export interface TuneTargetOptions {
  /** A model as `sheaf serve` takes it, or a URL. */
  readonly target: string;
  /** Template of one item, as in `--payload`. */
  readonly item?: string | undefined;
  readonly workers: number;
  /** As INFERENCE_DEVICE; default: the CPU. */
  readonly device?: string | undefined;
  readonly maxBatchSize: number;
  readonly seed: number;
  /** Of requests to a URL. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves the target named on the command line.
 * @throws {CommandFailure} where there is no such model; {UsageError} where it does not know which items to send.
 */
export async function resolveTuneTarget(options: TuneTargetOptions): Promise<TuneTarget> {
  const { target, item, seed, headers, workers, device, maxBatchSize } = options;
  const given = item === undefined ? undefined : usage(() => itemsFromTemplate(item, seed));
  if (/^https?:\/\//i.test(target)) {
    if (device !== undefined) throw new UsageError("--device is for a model: a server behind a URL has its own.");
    return urlBatches({ ...options, headers: headers ?? {}, slots: workers, items: given });
  }
  if (headers !== undefined) throw new UsageError("--header is for a URL: a model here takes no requests.");
  usage(() => devicesOf(device));
  // Nothing is handed over ahead: a run that waits behind another one would be timed with it.
  const spec = await modelNamed(target, { device, maxBatchSize, python: { instances: workers, prefetch: 0 } });
  try {
    const own = given?.map((item) => asInput(spec.input, item));
    return ofWorker(spec, workers, own === undefined ? await samplesOf(spec, target, seed) : inTurn(own));
  } catch (error) {
    if ("executor" in spec) await spec.executor.close();
    throw error;
  }
}

async function modelNamed(target: string, settings: RunnerSettings): Promise<ModelSpec> {
  try {
    return await resolveModel(target, settings);
  } catch (error) {
    throw new CommandFailure((error as Error).message);
  }
}

/** Items to measure with: the model's own, made up, or exported by a worker module. */
async function samplesOf(spec: ModelSpec, target: string, seed: number): Promise<Sampler> {
  const { input, sample } = spec;
  // A model in Python may want more of a text than that it is one.
  if ("executor" in spec && sample !== undefined) return samplerOf(sample);
  const random = seededRandom(seed);
  const make = samplerFor(input, {
    text: () => wordsItem(input.kind === "text" ? 12 : 24, random),
    query: () => wordsItem(6, random),
    number: () => 2 * random() - 1,
  });
  if (make !== undefined) return inTurn(Array.from({ length: 256 }, (_, index) => make(index)));
  if (sample !== undefined) return samplerOf(sample);
  const isModule = input.kind === "json" && "workerUrl" in spec;
  const exported = isModule ? ((await import(spec.workerUrl.href)) as { sample?: unknown }).sample : undefined;
  if (exported !== undefined) return samplerOf(exported);
  throw new UsageError(
    `${target} does not describe its inputs: ${"executor" in spec ? "give serve() a sample" : "export const sample (an item, or index => item)"}, or give --item.`,
  );
}

const asInput = (input: ModelInput, item: unknown): unknown =>
  input.kind === "floats" ? Float32Array.from(item as number[]) : item;

const inTurn =
  (items: readonly unknown[]): Sampler =>
  (index) =>
    items[index % items.length];

function ofWorker(spec: ModelSpec, instances: number, sample: Sampler): TuneTarget {
  const executor = (
    "executor" in spec
      ? spec.executor
      : workersOn(spec.device)(spec.workerUrl, { instances, data: spec.data, prefetch: 0 })
  ) as Executor<unknown, unknown>;
  const selfTest = async (): Promise<BatchVerdict> => {
    if (spec.selfTest !== undefined) return spec;
    await executor.ready();
    const samples = Array.from({ length: sampleCount }, (_, index) => sample(index));
    return testOn(executor, samples, spec);
  };
  const { device, note } = spec;
  return { run: executor, sample, device, note, slots: instances, selfTest, close: () => executor.close() };
}
