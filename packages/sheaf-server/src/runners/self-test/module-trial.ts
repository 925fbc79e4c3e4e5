import type { Executor } from "sheaf";
import { runHandle } from "sheaf/executors";
import { selfTest } from "sheaf/models";
import type { workerProcess, workerThread } from "sheaf/node";
import { batchVerdict, type BatchVerdict } from "./batch-verdict.ts";
import { neighboursOf } from "./neighbours.ts";
import { closedOn, inspectionExecutor } from "../workers/inspection.ts";
import type { ModelSpec, ModuleSpec, RunnerSettings } from "../contract/model-spec.ts";
import type { ModuleExports } from "./module-sample-worker.ts";
import { typedMessage } from "../../shared/typed-message.ts";
import { workerModule } from "../workers/worker-module.ts";

export interface ModuleTrialOptions extends Pick<RunnerSettings, "batchDependent" | "maxBatchSize" | "signal"> {
  /** As the module will run: a crash in native code must not take the server with it. */
  readonly open: typeof workerThread | typeof workerProcess;
}

/**
 * A worker module that has a `sample`, tried out with it as other models are with made-up items: alone against in a batch.
 * Without a sample only its author knows its inputs, and it is served as it is.
 * @throws {Error} the module cannot be loaded.
 */
export async function tryOutModule(spec: ModuleSpec, { open, ...settings }: ModuleTrialOptions): Promise<ModuleSpec> {
  const { name, workerUrl, data } = spec;
  const broken = (error: unknown): never => {
    throw new Error(`${name} cannot be served: ${(error as Error).message}`, { cause: error });
  };
  const { signal } = settings;
  const sampler = open<string, ModuleExports>(workerModule("module-sample-worker", import.meta.url), { name });
  const ask = inspectionExecutor(sampler, signal);
  const { samples, isCacheable, onBatchError } = await ask(workerUrl.href).catch(broken);
  const known = { ...spec, isCacheable, onBatchError };
  if (samples.length === 0) return { ...known, note: `${spec.note} It exports no sample, so it is not tried out.` };

  const executor = open<never, unknown>(workerUrl, { name, data });
  const end = closedOn(signal, executor);
  try {
    await executor.ready().catch(broken);
    return await triedOut(known, executor, samples, settings);
  } finally {
    end();
    await executor.close();
  }
}

/** A model with the findings of the self-test on a ready executor of it: also that it fails on its own sample. */
export async function triedOut<Spec extends ModelSpec>(
  spec: Spec,
  executor: Executor<never, unknown>,
  samples: readonly unknown[],
  settings: Omit<ModuleTrialOptions, "open">,
): Promise<Spec> {
  try {
    const verdict = await testOn(executor, samples, { ...settings, input: spec.input });
    const note = verdict.warning === undefined ? spec.note : `${spec.note} ${verdict.warning}`;
    return { ...spec, sample: samples[0], ...verdict, note };
  } catch (error) {
    const sampleFailure = typedMessage(error as Error);
    const warning = `It fails on its own sample: ${sampleFailure}`;
    return { ...spec, note: `${spec.note} ${warning}`, warning, sampleFailure };
  }
}

/** Runs the self-test on an executor that is ready. @throws {Error} the error of a run. */
export async function testOn(
  executor: Executor<never, unknown>,
  samples: readonly unknown[],
  {
    input,
    maxBatchSize,
    ...settings
  }: Pick<RunnerSettings, "batchDependent" | "maxBatchSize"> & Pick<ModelSpec, "input">,
): Promise<BatchVerdict> {
  const run = async (items: readonly unknown[]): Promise<ArrayLike<unknown>> =>
    executor.run([...items] as never[], runHandle({ size: items.length }));
  const neighbours = neighboursOf(input, samples);
  return batchVerdict(await selfTest(run, samples, { maxBatchSize, neighbours }), settings);
}
