import { existsSync, readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, nearestOf } from "sheaf/internal";
import { masked } from "../shared/masked.ts";
import { devicesOf, noThreadsBecause } from "../runners/contract/devices.ts";
import { settingsTable, type Setting, type Settings } from "./settings.ts";

/** The environment of this process. */
export const processEnvironment: Readonly<Record<string, string | undefined>> = process.env;

/** A wrong value or name in flags, environment or config file. The message names it; the command exits with 2. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export type Origin = "flag" | "environment" | "config file" | "default";

/** A model in a config file: its name or path, and the settings that are its own. */
export interface ModelEntry {
  readonly model: string;
  /** As in `/infer/{name}`; default: derived from the model. */
  readonly name?: string | undefined;
  readonly settings: Partial<Settings>;
}

export interface LoadedConfig {
  readonly settings: Settings;
  readonly origins: Readonly<Record<keyof Settings, Origin>>;
  /** Absolute path of the config file, if there was one. */
  readonly file: string | undefined;
  /** The models that the config file names, else the default one. */
  readonly models: readonly ModelEntry[];
  readonly modelsOrigin: Exclude<Origin, "flag" | "environment">;
}

export interface ConfigSources {
  /** By setting name, as the command line gave them. */
  readonly flags?: Readonly<Record<string, unknown>> | undefined;
  /** Default: the process environment. An empty variable counts as unset. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Path of the config file. Default: sheaf.config.json, else sheaf.config.js, in the working directory, if present. */
  readonly file?: string | undefined;
  /** A command's own defaults. */
  readonly defaults?: Partial<Settings> | undefined;
}

/** The byte order mark, which editors on Windows write before a text. */
const byteOrderMark = /^\uFEFF/;

/** The model that is served by default. */
const defaultModels: readonly ModelEntry[] = [{ model: "use-lite", settings: {} }];
const defaultFiles = ["sheaf.config.json", "sheaf.config.js", "sheaf.config.mjs"];
const perModel = settingsTable.filter(({ isPerModel }) => isPerModel);

/**
 * Resolves every setting: flag > environment > config file > default.
 * @throws {ConfigError} naming the setting, the allowed values, and the one it got.
 */
export async function loadConfig(sources: ConfigSources = {}): Promise<LoadedConfig> {
  const { flags = {}, environment = processEnvironment } = sources;
  const file = fileToRead(sources.file);
  const { models, ...fromFile } = file === undefined ? { models: undefined } : await readConfigFile(file);
  refuseUnknown(fromFile, file);
  const values: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  for (const setting of settingsTable) {
    const { name, env, flag } = setting;
    const candidates: [Origin, string, unknown][] = [
      ["flag", flag, flags[name]],
      ["environment", env, environment[env] === "" ? undefined : environment[env]],
      ["config file", `${name} in ${file}`, fromFile[name]],
    ];
    const [origin, label, raw] = candidates.find(([, , value]) => value !== undefined) ?? ["default", name, undefined];
    values[name] = raw === undefined ? (sources.defaults?.[name] ?? setting.default) : parsed(setting, label, raw);
    origins[name] = origin;
  }
  const named = modelEntries(models, file);
  const settings = values as unknown as Settings;
  const isolation = origins.workerIsolation === "default" ? undefined : settings.workerIsolation;
  for (const own of [{}, ...named.map((entry) => entry.settings)]) {
    refuseThreads({ inferenceDevice: settings.inferenceDevice, workerIsolation: isolation, ...own });
  }
  return {
    settings,
    origins: origins as Record<keyof Settings, Origin>,
    file,
    models: named.length > 0 ? named : defaultModels,
    modelsOrigin: named.length > 0 ? "config file" : "default",
  };
}

type Asked = { readonly [Name in "inferenceDevice" | "workerIsolation"]?: Settings[Name] | undefined };

/** Threads that were asked for, on a device that takes none: by default its models run in processes. */
function refuseThreads({ inferenceDevice, workerIsolation }: Asked): void {
  if (workerIsolation !== "thread") return;
  const device = devicesOf(inferenceDevice).find((candidate) => noThreadsBecause(candidate) !== undefined);
  if (device === undefined) return;
  throw new ConfigError(
    `WORKER_ISOLATION thread cannot be combined with INFERENCE_DEVICE ${inferenceDevice}: ${noThreadsBecause(device)}. Unset it, or set process.`,
  );
}

function parsed(setting: Setting, label: string, raw: unknown): unknown {
  const value = setting.parse(raw);
  if (value !== undefined) return value;
  const shown = typeof raw === "string" ? masked(raw) : raw;
  const got = setting.isSecret ? "something else" : describe(shown);
  throw new ConfigError(`${label} must be ${setting.expects}, got ${got}.`);
}

function fileToRead(given: string | undefined): string | undefined {
  if (given === undefined) return defaultFiles.map((name) => resolve(name)).find((path) => existsSync(path));
  const path = resolve(given);
  if (!existsSync(path)) throw new ConfigError(`There is no config file ${path}.`);
  if (statSync(path).isDirectory()) throw new ConfigError(`The config file ${path} is a folder.`);
  return path;
}

async function readConfigFile(path: string): Promise<Record<string, unknown>> {
  let content: unknown;
  try {
    if (path.endsWith(".json")) content = JSON.parse(readFileSync(path, "utf8").replace(byteOrderMark, ""));
    else content = ((await import(pathToFileURL(path).href)) as { default?: unknown }).default;
  } catch (error) {
    throw new ConfigError(`The config file ${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  if (typeof content === "object" && content !== null && !Array.isArray(content)) return { ...content };
  throw new ConfigError(`The config file ${path} must hold an object (in a .js file: export default { … }).`);
}

function refuseUnknown(fromFile: Record<string, unknown>, file: string | undefined): void {
  const names = settingsTable.map(({ name }) => name as string);
  const unknown = Object.keys(fromFile).find((key) => !names.includes(key));
  if (unknown === undefined) return;
  throw new ConfigError(`${unknown} in ${file} is not a setting; ${nearestOf(unknown, ["models", ...names])}`);
}

function modelEntries(models: unknown, file: string | undefined): ModelEntry[] {
  if (models === undefined) return [];
  if (!Array.isArray(models)) throw new ConfigError(`models in ${file} must be an array of names, paths or objects.`);
  return models.map((entry: unknown, index) => modelEntry(entry, `models[${index}] in ${file}`));
}

function modelEntry(entry: unknown, label: string): ModelEntry {
  if (typeof entry === "string" && entry !== "") return { model: entry, settings: {} };
  const { model, name, ...rest } = (typeof entry === "object" && entry !== null ? entry : {}) as Record<
    string,
    unknown
  >;
  const isName = name === undefined || (typeof name === "string" && name !== "");
  if (typeof model !== "string" || model === "" || !isName)
    throw new ConfigError(`${label} must be a name, a path, or { model, name?, …settings }, got ${describe(entry)}.`);
  const settings: Record<string, unknown> = {};
  for (const [key, raw] of Object.entries(rest)) {
    const setting = perModel.find((candidate) => candidate.name === key);
    if (setting === undefined) {
      const known = ["name", ...perModel.map((own) => own.name)];
      throw new ConfigError(`${key} of ${label} is not a setting of a model; ${nearestOf(key, known)}`);
    }
    settings[key] = parsed(setting, `${key} of ${label}`, raw);
  }
  return { model, name, settings };
}
