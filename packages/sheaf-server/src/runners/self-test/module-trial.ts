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
  /** The same isolation as in service, so that a crash in native code does not end the server. */
  readonly open: typeof workerThread | typeof workerProcess;
}

/**
 * Self-tests a worker module with its `sample`, as other models with made-up items: alone and in batches. Without a sample only its
 * author knows its inputs, and it is served untested.
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

/** Adds the findings of the self-test, run on the model's ready executor, including a failure on its own sample. */
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
