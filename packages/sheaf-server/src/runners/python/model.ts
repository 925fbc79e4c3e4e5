import { basename, resolve } from "node:path";
import { workerCommand } from "sheaf/node";
import type { OpenSpec, RunnerSettings } from "../contract/model-spec.ts";
import { devicesOf } from "../contract/devices.ts";
import { closedOn } from "../workers/inspection.ts";
import { triedOut } from "../self-test/module-trial.ts";
import { inputOf, itemFromJson, outputOf } from "./columns.ts";
import { convertingExecutor } from "./executor.ts";
import { interpreterFor } from "./interpreter.ts";
import { itemLength } from "../tensors/item-length.ts";
import { typedMessage } from "../../shared/typed-message.ts";

/** Where libraries of Python look for how many threads a run may use. */
const threadVariables = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"];
/** Items of the sample that the self-test runs. */
const maxTried = 3;
/** Characters of JSON. */
const longestExample = 16_384;

/**
 * A model in a Python file that calls `serve` of `sheaf_worker`. Its workers start here, and declare its inputs
 * once they have loaded it. A caller that does not serve `executor` must close it.
 * @throws {Error} naming the file: Python cannot be started, or the model does not load.
 */
export async function pythonFileSpec(file: string, settings: RunnerSettings = {}): Promise<OpenSpec> {
  const { intraOpNumThreads: threads = 1, python: { interpreter, secrets = [], ...options } = {} } = settings;
  const path = resolve(file);
  const { name = basename(path, ".py") } = options;
  const [device] = devicesOf(settings.device);
  const failed = (error: unknown, python?: string): never => {
    const message = typedMessage(error as Error);
    const lacks = python !== undefined && message.includes("ModuleNotFoundError");
    const advice = lacks
      ? ` Its Python is ${python}: install the missing package there, or set PYTHON to another.`
      : "";
    throw new Error(`${file} cannot be served: ${message}${advice}`, { cause: error });
  };
  const command = await interpreterFor(path, interpreter).catch((error: unknown) => failed(error));
  const workers = workerCommand<never, unknown>({
    ...options,
    command,
    args: [path],
    env: {
      ...Object.fromEntries(secrets.map((variable) => [variable, undefined])),
      ...Object.fromEntries(threadVariables.map((variable) => [variable, String(threads)])),
    },
    data: { device, threads },
    name,
    // A result is written into its reply and dropped: it needs no memory of its own.
    resultRows: "view",
  });
  const end = closedOn(settings.signal, workers);
  try {
    await workers.ready();
    const declaration = workers.declaration!;
    const spec: OpenSpec = {
      name,
      executor: convertingExecutor(workers, declaration),
      input: inputOf(declaration),
      output: outputOf(declaration),
      example: exampleOf(declaration.sample),
      isCacheable: declaration.cacheable,
      weigh: declaration.weight === "length" ? itemLength : undefined,
      note: `Runs in ${command}, given the device ${device}.`,
    };
    const different = new Map(declaration.sample.map((item) => [JSON.stringify(item), item]));
    const samples = [...different.values()].slice(0, maxTried).map(itemFromJson(declaration));
    if (samples.length > 1) return await triedOut(spec, spec.executor, samples, settings);
    const notTried = "Its self-test did not run: that needs a sample of two different items.";
    return { ...spec, sample: samples[0], note: `${spec.note} ${notTried}` };
  } catch (error) {
    await workers.close();
    return failed(error, command);
  } finally {
    end();
  }
}

/** The first item of a sample, where it is small enough to be shown. */
function exampleOf([item]: readonly unknown[]): unknown {
  return item !== undefined && JSON.stringify(item).length <= longestExample ? item : undefined;
}
