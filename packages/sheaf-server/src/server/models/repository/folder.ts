import { existsSync, statSync } from "node:fs";
import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { modelName } from "../../../runners/resolve-model.ts";

export interface FolderVersion {
  /** Path of the model, as `sheaf serve` takes it. */
  readonly model: string;
  /** The number of its folder; undefined if the model has no versions. */
  readonly versionName: string | undefined;
  /** Fingerprint of the model's files: their paths, sizes and times. */
  readonly signature: string;
}

/** A folder with more entries probably holds something else. */
const maxEntries = 1000;
const maxFiles = 10_000;

const isModelFile = (name: string): boolean => /\.(?:onnx|py|m?[jt]s)$/u.test(name);
/** Hidden files, and those that Python and npm keep beside a model. */
const isLeftOut = (name: string): boolean =>
  name.startsWith(".") || name === "__pycache__" || name === "node_modules" || name === "venv";
const isVersion = (name: string): boolean => /^[1-9]\d{0,14}$/u.test(name);
const modelFiles = ["model.onnx", "model.py", "model.mjs", "model.js", "model.ts"];
const textFiles = ["tokenizer.json", "config.json"];

/** Whether a word of `sheaf serve` is a folder of models, and not a model that is a folder. */
export function isModelsFolder(word: string): boolean {
  if (statSync(word, { throwIfNoEntry: false })?.isDirectory() !== true) return false;
  return ![...textFiles, "model.onnx", "onnx"].some((name) => existsSync(join(word, name)));
}

/** The models in a folder by name, sorted, each with its path, or with several paths that share the name. */
export async function modelsIn(root: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const entries = (await readdir(root)).filter((entry) => !isLeftOut(entry)).sort();
  if (entries.length > maxEntries)
    throw new Error(`${root} has ${entries.length} entries; a folder of models has at most ${maxEntries}.`);
  const models = new Map<string, string[]>();
  for (const entry of entries) {
    const path = join(root, entry);
    const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
    if (!isFolder && !isModelFile(entry)) continue;
    const name = isFolder ? entry : modelName(entry);
    models.set(name, [...(models.get(name) ?? []), path]);
  }
  return models;
}

/**
 * The present state of a model that `modelsIn` has listed. In a folder with versions the highest number is served.
 * @throws {Error} saying why nothing of this name can be served.
 */
export async function findModel(root: string, name: string, paths: readonly string[]): Promise<FolderVersion> {
  const [path] = paths as readonly [string];
  if (paths.length > 1)
    throw new Error(`${name} is ${paths.map((one) => basename(one)).join(" and ")}; give one of them another name.`);
  if (isVersion(name))
    throw new Error(`${name} is a number, the name of a version: move it into the folder of its model.`);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() !== true) {
    const signature = await signatureOf(root, await withWeights(path));
    return { model: path, versionName: undefined, signature };
  }
  const entries = await readdir(path);
  const versionName = entries.filter(isVersion).sort((a, b) => Number(b) - Number(a))[0];
  const folder = versionName === undefined ? path : join(path, versionName);
  const inside = versionName === undefined ? entries : await readdir(folder);
  const signature = await signatureOf(root, [path, folder, ...(await filesBelow(folder))]);
  return { model: modelOf(folder, inside), versionName, signature };
}

/** A text model is its folder; anything else is a file named `model`. */
function modelOf(folder: string, entries: readonly string[]): string {
  if (entries.some((entry) => textFiles.includes(entry)) || entries.includes("onnx")) return folder;
  const files = modelFiles.filter((file) => entries.includes(file));
  if (files.length === 1) return join(folder, files[0]!);
  const where = `${basename(dirname(folder))}/${basename(folder)}`;
  if (files.length > 1) throw new Error(`${where} has ${files.join(" and ")}; keep one of them.`);
  throw new Error(`${where} has no model: name its file ${modelFiles.join(", ")}, or put a text model's files there.`);
}

/** An `.onnx` file with the weights that exporters keep beside it. */
async function withWeights(path: string): Promise<string[]> {
  if (!path.endsWith(".onnx")) return [path];
  const name = basename(path, ".onnx");
  const beside = [`${name}.onnx.data`, `${name}.onnx_data`, `${name}.data`].map((one) => join(dirname(path), one));
  return [path, ...beside.filter((one) => existsSync(one))];
}

async function filesBelow(folder: string): Promise<string[]> {
  const files: string[] = [];
  const open = [folder];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const entry of (await readdir(next)).filter((one) => !isLeftOut(one)).sort()) {
      const path = join(next, entry);
      files.push(path);
      if (files.length > maxFiles) throw new Error(`${folder} has more than ${maxFiles} files.`);
      if ((await lstat(path)).isDirectory()) open.push(path);
    }
  }
  return files;
}

/** @throws {Error} if one is a broken link, a link out of the folder of models, a pipe or a device. */
async function signatureOf(root: string, paths: readonly string[]): Promise<string> {
  const realRoot = await realpath(root);
  const lines: string[] = [];
  for (const path of paths) {
    const real = await realpath(path);
    if (real !== realRoot && !real.startsWith(realRoot + sep))
      throw new Error(`${relative(root, path)} is a link that leaves the folder of models.`);
    const found = await stat(path);
    // Reading a pipe would never end.
    if (!found.isFile() && !found.isDirectory())
      throw new Error(`${relative(root, path)} is neither a file nor a folder.`);
    const { size, mtimeMs, ino } = found;
    const isFolder = (await lstat(path)).isDirectory();
    lines.push(isFolder ? path : `${path} ${size} ${mtimeMs} ${ino}`);
  }
  return lines.join("\n");
}
