import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { builtinModels } from "./builtin.ts";
import { devicesOf } from "./contract/devices.ts";
import { placeModel } from "./devices/place.ts";
import type { ModelSpec, ModuleSpec, RunnerSettings } from "./contract/model-spec.ts";
import { onnxFileSpec } from "./onnx/file.ts";
import { pythonFileSpec } from "./python/model.ts";
import { textFolderSpec } from "./text/folder.ts";

/**
 * The model that an argument of `sheaf serve` names: a built-in model, an `.onnx` file, a folder in the Hugging Face layout, a Python
 * file, whose workers start here, or a worker module (`.js`, `.mjs`; `.ts` where Node loads it).
 * @throws {Error} if it is none of these, or cannot be served: the message names it and says what to do.
 */
export async function resolveModel(word: string, settings: RunnerSettings = {}): Promise<ModelSpec> {
  devicesOf(settings.device);
  if (Object.hasOwn(builtinModels, word)) {
    const builtin = builtinModels[word as keyof typeof builtinModels];
    return placeModel(word, settings, async (device) => builtin({ ...settings, device }));
  }
  if (await isFolder(word))
    return placeModel(word, settings, (device) => textFolderSpec(word, { ...settings, device }));
  if (word.endsWith(".onnx"))
    return placeModel(word, settings, (device) => onnxFileSpec(word, { ...settings, device }));
  return word.endsWith(".py") ? pythonFileSpec(word, settings) : workerModuleSpec(word);
}

/** @throws {Error} the word names no model. */
export async function checkModelWord(word: string): Promise<void> {
  if (!Object.hasOwn(builtinModels, word)) await isFolder(word);
}

async function isFolder(word: string): Promise<boolean> {
  const found = await stat(word).catch(() => undefined);
  if (found === undefined) {
    const names = Object.keys(builtinModels).join(", ");
    throw new Error(
      `There is no model ${word}: name a built-in one (${names}), an .onnx file, a folder, a Python file (.py) or a worker module (.js).`,
    );
  }
  if (!found.isDirectory() && !(found.isFile() && /\.(?:onnx|py|m?[jt]s)$/u.test(word)))
    throw new Error(`${word} is neither an .onnx file nor a Python file (.py) nor a worker module (.js).`);
  return found.isDirectory();
}

/** The name of the model that this word names: a file's or folder's own name; in a cache of the hub `org/name`. */
export function modelName(word: string): string {
  const path = resolve(word);
  const [, repository] = /models--([^\\/]+)[\\/]snapshots[\\/][^\\/]+$/u.exec(path) ?? [];
  return repository?.replaceAll("--", "/") ?? basename(path).replace(/\.(?:onnx|py|m?[jt]s)$/u, "");
}

/** Items and results are any JSON values that the module takes and gives. */
function workerModuleSpec(file: string): ModuleSpec {
  const canLoadTypeScript = (process.features as { typescript?: unknown }).typescript !== undefined;
  if (file.endsWith("ts") && !canLoadTypeScript && !process.execArgv.some((flag) => flag.includes("strip-types"))) {
    throw new Error(
      `${file}: this Node (${process.version}) does not load TypeScript; compile it to .js and name that file.`,
    );
  }
  return {
    name: modelName(file),
    workerUrl: pathToFileURL(resolve(file)),
    data: undefined,
    input: { kind: "json" },
    output: { kind: "json" },
    note: "A worker module: takes and gives any JSON value.",
  };
}
