import type { Command } from "commander";
import { builtinModels } from "../runners/builtin.ts";
import type { ModelSpec } from "../runners/model-spec.ts";
import { contentHash } from "../runners/content-hash.ts";
import { tryOutModule } from "../runners/self-test/module-trial.ts";
import { modelName, resolveModel } from "../runners/resolve-model.ts";
import { threadsPerWorker } from "../server/models/cores.ts";
import { ConfigError, type ModelEntry } from "../server/config.ts";
import type { ModelDefinition } from "../server/models/model-definition.ts";
import type { Settings } from "../server/settings.ts";
import type { SheafServer } from "../server/server.ts";
import { definitionOf, runsElsewhere, workersOf } from "../server/models/worker-model.ts";
import { serveUntilSignal } from "./signals.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { runCommand } from "./command.ts";
import { commandWithSettings, configOf } from "./setting-options.ts";

/**
 * `sheaf serve [model …]`: serves until SIGTERM or SIGINT. Gives 0 when everything accepted was answered, 1 when the
 * grace period cut some off or a model did not load.
 */
export function serve(words: readonly string[], streams: CommandStreams): Promise<number> {
  return runCommand(serveCommand(streams), words, streams, async (command) => {
    const { settings, models } = await configOf(command);
    const { exact = false } = command.opts<{ exact?: boolean }>();
    const named = command.args.map((model) => ({ model, settings: {} }));
    const entries: readonly ModelEntry[] = named.length > 0 ? named : models;
    if (settings.role !== "all" && settings.natsUrl === undefined)
      throw new ConfigError(`A ${settings.role} needs NATS_URL: the queue that it shares with the rest of its fleet.`);
    return serveModels(entries, settings, exact);
  });
}

export function serveCommand(streams: CommandStreams): Command {
  return commandWithSettings("serve", "Serves models over HTTP, each in dynamic batches of its own.", streams, {
    isShown: ({ group }) => group !== "Upstream",
  })
    .argument(
      "[model...]",
      `what to serve: ${Object.keys(builtinModels).join(", ")}, an .onnx file, a model folder or a worker module (.js) (default: use-lite)`,
    )
    .option("--exact", "run a model one by one where its results depend on their batch-mates");
}

async function serveModels(entries: readonly ModelEntry[], settings: Settings, exact: boolean): Promise<number> {
  // Only now: `serve --help` answers without an HTTP server in memory.
  const { openApp } = await import("../server/http/app.ts");
  const { listenDuringStartup } = await import("../server/http/startup-listener.ts");
  const app = openApp(settings);
  const models = entries.map(({ model, name }) => name ?? modelName(model));
  const early = await listenDuringStartup(app, settings, models);
  app.log.info({ models }, `listening on ${early.url}`);
  let server: SheafServer;
  try {
    const { serverOn } = await import("../server/server.ts");
    const specs: ModelSpec[] = [];
    for (const entry of entries) specs.push(await specOf(entry, settings, exact));
    // Workers start only now: where a model cannot be served nothing has to be stopped.
    const definitions = entries.map((entry, index) => definitionFor(entry, specs[index]!, settings));
    server = await serverOn(app, { models: definitions, settings });
    await app.ready();
  } catch (error) {
    early.close();
    throw error;
  }
  return serveUntilSignal({
    ...server,
    listen: async () => early.open(),
    abandon: () => Promise.all(server.models.all.map((model) => model.close(0))),
  });
}

async function specOf({ model, settings: own }: ModelEntry, shared: Settings, exact: boolean): Promise<ModelSpec> {
  const settings = { ...shared, ...own };
  const intraOpNumThreads = threadsPerWorker(settings);
  const { batchDependent, maxBatchSize } = settings;
  const trial = { exact, batchDependent, maxBatchSize };
  const spec = await resolveModel(model, {
    device: settings.inferenceDevice,
    intraOpNumThreads,
    ...trial,
  });
  if (runsElsewhere(settings)) return spec;
  const version = settings.modelVersion ?? (settings.natsUrl === undefined ? undefined : await contentHash(model));
  const versioned = { ...spec, version };
  return spec.input.kind === "json" ? tryOutModule(versioned, { open: workersOf(settings), ...trial }) : versioned;
}

function definitionFor({ name, settings: own }: ModelEntry, spec: ModelSpec, shared: Settings): ModelDefinition {
  return { ...definitionOf({ ...spec, name: name ?? spec.name }, { ...shared, ...own }), settings: own };
}
