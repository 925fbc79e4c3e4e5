import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { workerThread } from "sheaf/node";
import { builtinModels } from "./builtin.ts";
import type { ServingDevice } from "./onnx/device-worker.ts";
import { deviceNote, inspectionExecutor } from "./onnx/inspection.ts";
import type { ModelSpec, ModuleSpec, RunnerSettings } from "./model-spec.ts";
import { onnxFileSpec } from "./onnx/file.ts";
import { pythonFileSpec } from "./python/model.ts";
import { textFolderSpec } from "./text/folder.ts";
import { devicesOf } from "./onnx/devices.ts";
import { workerModule } from "./worker-module.ts";

/**
 * What an argument of `sheaf serve` names: a built-in model, an `.onnx` file, a folder in the Hugging Face layout, a Python
 * file, whose workers start here, or a worker module (`.js`, `.mjs`; `.ts` where Node loads it).
 * @throws {Error} it is none of these, or cannot be served: the message names it and says what to do.
 */
export async function resolveModel(word: string, settings: RunnerSettings = {}): Promise<ModelSpec> {
  devicesOf(settings.device);
  if (Object.hasOwn(builtinModels, word)) return onItsDevice(word as keyof typeof builtinModels, settings);
  const found = await stat(word).catch(() => undefined);
  if (found === undefined) {
    const names = Object.keys(builtinModels).join(", ");
    throw new Error(
      `There is no model ${word}: name a built-in one (${names}), an .onnx file, a folder, a Python file (.py) or a worker module (.js).`,
    );
  }
  if (found.isDirectory()) return textFolderSpec(word, settings);
  if (found.isFile() && word.endsWith(".onnx")) return onnxFileSpec(word, settings);
  if (found.isFile() && word.endsWith(".py")) return pythonFileSpec(word, settings);
  if (found.isFile() && /\.m?[jt]s$/u.test(word)) return workerModuleSpec(word);
  throw new Error(`${word} is neither an .onnx file nor a Python file (.py) nor a worker module (.js).`);
}

/** What a model is called that is named by this word: a file's or folder's own name. */
export const modelName = (word: string): string => basename(resolve(word)).replace(/\.(?:onnx|py|m?[jt]s)$/u, "");

/** A built-in model, on the first device that is available. */
async function onItsDevice(name: keyof typeof builtinModels, settings: RunnerSettings): Promise<ModuleSpec> {
  const { device, refused } = await servingDevice(name, settings);
  const spec = builtinModels[name]({ ...settings, device });
  return { ...spec, note: `${spec.note} ${deviceNote(device, refused)}` };
}

async function servingDevice(
  name: string,
  { device: setting = "cpu", signal }: RunnerSettings,
): Promise<ServingDevice> {
  // The CPU is always available; any other device is tried out, in another thread.
  const [device = "cpu"] = devicesOf(setting);
  if (device === "cpu") return { device, refused: [] };
  const asked = workerThread<string, ServingDevice>(workerModule("onnx/device-worker"), { name });
  const ask = inspectionExecutor(asked, signal);
  return ask(setting).catch((error: unknown) => {
    throw new Error(`${name} cannot be served on INFERENCE_DEVICE ${setting}: ${(error as Error).message}`, {
      cause: error,
    });
  });
}

/** Items and results are whatever JSON values the module takes and gives. */
function workerModuleSpec(file: string): ModuleSpec {
  const canLoadTypeScript = (process.features as { typescript?: unknown }).typescript !== undefined;
  if (file.endsWith("ts") && !canLoadTypeScript && !process.execArgv.some((flag) => flag.includes("strip-types"))) {
    throw new Error(`${file}: this Node (${process.version}) loads no TypeScript; build it to .js and name that.`);
  }
  return {
    name: modelName(file),
    task: "tensor",
    workerUrl: pathToFileURL(resolve(file)),
    data: undefined,
    input: { kind: "json" },
    output: { kind: "json" },
    note: "A worker module: takes and gives any JSON value.",
  };
}
