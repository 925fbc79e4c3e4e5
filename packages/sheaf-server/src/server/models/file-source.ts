import { basename } from "node:path";
import type { WorkerLogLine } from "sheaf/internal/node";
import { contentHash } from "../../runners/content-hash.ts";
import type { ModelSpec } from "../../runners/contract/model-spec.ts";
import { modelName, resolveModel } from "../../runners/resolve-model.ts";
import { tryOutModule } from "../../runners/self-test/module-trial.ts";
import type { ModelEntry } from "../../settings/config.ts";
import { secretVariables, type Settings } from "../../settings/settings.ts";
import { threadsPerWorker } from "./cores.ts";
import type { ModelSource } from "./deployment.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import { definitionOf, workersOf } from "./worker-model.ts";
import { roleOf } from "../../settings/role.ts";

export const nameOf = ({ model, name }: ModelEntry): string => name ?? modelName(model);

/** Whether only the model's worker knows its inputs. */
export const isLearntFromWorkers = ({ model }: ModelEntry, settings: Settings): boolean =>
  roleOf(settings) === "gateway" && model.endsWith(".py");

/** The source of a built-in model, a file or a folder. `log` gets the output of a Python model. */
export function fileSource(entry: ModelEntry, shared: Settings, log: (line: WorkerLogLine) => void): ModelSource {
  const name = nameOf(entry);
  const settings = { ...shared, ...entry.settings };
  const isLearnt = isLearntFromWorkers(entry, shared);
  return {
    name,
    waitsFor: isLearnt ? `a worker of ${name}` : basename(entry.model),
    async load(signal, learn): Promise<ModelDefinition> {
      if (isLearnt) return { ...(await learn!(name, settings, signal)), settings: entry.settings };
      const definition = definitionOf(await specOf(entry.model, settings, { name, log, signal }), settings);
      return { ...definition, settings: { ...entry.settings, ...definition.settings } };
    },
  };
}

interface LoadParts {
  readonly name: string;
  readonly log: (line: WorkerLogLine) => void;
  readonly signal: AbortSignal;
}

async function specOf(model: string, settings: Settings, { name, log, signal }: LoadParts): Promise<ModelSpec> {
  const { batchDependent, maxBatchSize } = settings;
  const trial = { batchDependent, maxBatchSize, signal };
  const { modelFile, pooling } = settings;
  const resolved = await resolveModel(model, {
    device: settings.inferenceDevice,
    modelFile,
    pooling,
    intraOpNumThreads: threadsPerWorker(settings),
    python: {
      name,
      interpreter: settings.python,
      instances: settings.workers,
      niceness: 0,
      loadTimeoutMs: settings.loadTimeoutMs,
      recycleAfterBatches: settings.recycleAfterBatches,
      secrets: secretVariables,
      log,
    },
    ...trial,
  });
  const spec = { ...resolved, name };
  // A gateway runs no model and has no device.
  if (roleOf(settings) === "gateway") return { ...spec, device: undefined };
  const needsVersion = roleOf(settings) !== "alone" || settings.cacheDir !== undefined;
  const version = settings.modelVersion ?? (needsVersion ? await contentHash(model) : undefined);
  const versioned = { ...spec, version };
  // A model with an open executor has been self-tested already.
  const isUntried = "workerUrl" in versioned && spec.input.kind === "json";
  return isUntried ? tryOutModule(versioned, { open: workersOf(settings), ...trial }) : versioned;
}
