import { basename } from "node:path";
import type { Command } from "commander";
import { setTimeout as sleep } from "node:timers/promises";
import type { WorkerLogLine } from "sheaf/node";
import { builtinModels } from "../runners/builtin.ts";
import type { ModelSpec } from "../runners/model-spec.ts";
import { contentHash } from "../runners/content-hash.ts";
import { tryOutModule } from "../runners/self-test/module-trial.ts";
import { modelName, resolveModel } from "../runners/resolve-model.ts";
import { threadsPerWorker } from "../server/models/cores.ts";
import { ConfigError, type ModelEntry } from "../server/config.ts";
import type { ModelDefinition } from "../server/models/model-definition.ts";
import { secretVariables, type Settings } from "../server/settings.ts";
import type { StartingModel } from "../server/http/lifecycle/startup-listener.ts";
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
    const named = command.args.map((model) => ({ model, settings: {} }));
    const entries: readonly ModelEntry[] = named.length > 0 ? named : models;
    if (settings.role !== "all" && settings.natsUrl === undefined)
      throw new ConfigError(`A ${settings.role} needs NATS_URL: the queue that it shares with the rest of its fleet.`);
    return serveModels(entries, settings);
  });
}

export function serveCommand(streams: CommandStreams): Command {
  return commandWithSettings("serve", "Serves models over HTTP, each in dynamic batches of its own.", streams, {
    isShown: ({ group }) => group !== "Upstream",
  }).argument(
    "[model...]",
    `what to serve: ${Object.keys(builtinModels).join(", ")}, an .onnx file, a model folder, a Python file (.py) or a worker module (.js) (default: use-lite)`,
  );
}

async function serveModels(entries: readonly ModelEntry[], settings: Settings): Promise<number> {
  // Only now: `serve --help` answers without an HTTP server in memory.
  const { openApp } = await import("../server/http/app.ts");
  const { listenDuringStartup } = await import("../server/http/lifecycle/startup-listener.ts");
  const app = openApp(settings);
  const specs = new Map<ModelEntry, ModelSpec>();
  const nameOf = ({ model, name }: ModelEntry): string => name ?? modelName(model);
  const starting = (): StartingModel[] =>
    entries.map((entry) => ({
      name: nameOf(entry),
      reason: specs.has(entry) ? undefined : `waits for ${basename(entry.model)}`,
    }));
  // A gateway loads no model: it starts in a moment.
  const holdMs = runsElsewhere(settings) ? settings.natsHoldMs : 0;
  const early = await listenDuringStartup(app, settings, starting, holdMs);
  app.log.info({ models: entries.map(nameOf) }, `listening on ${early.url}`);
  let server: SheafServer;
  try {
    const { serverOn } = await import("../server/server.ts");
    const { modelOutput } = await import("../server/observe/log.ts");
    // All at once: each looks for itself, and a model in Python loads meanwhile.
    const looks = entries.map(async (entry) => {
      const log = modelOutput(app.log, nameOf(entry));
      const spec = await specOf(entry, settings, log);
      specs.set(entry, spec);
    });
    const failed = (await Promise.allSettled(looks)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
    // Workers of JavaScript start only now: where a model cannot be served they need not be stopped.
    const definitions = entries.map((entry) => definitionFor(entry, specs.get(entry)!, settings));
    server = await serverOn(app, { models: definitions, settings });
    await app.ready();
  } catch (error) {
    early.close();
    for (const spec of specs.values()) if ("executor" in spec) await spec.executor.close();
    throw error;
  }
  return serveUntilSignal({
    ...server,
    listen: async () => {
      await Promise.race([server.ready().catch(() => undefined), sleep(holdMs, undefined, { ref: false })]);
      early.open();
    },
    abandon: () => Promise.all(server.models.all.map((model) => model.close(0))),
  });
}

async function specOf(
  { model, settings: own }: ModelEntry,
  shared: Settings,
  log: (line: WorkerLogLine) => void,
): Promise<ModelSpec> {
  const settings = { ...shared, ...own };
  const { batchDependent, maxBatchSize, workerNiceness: niceness } = settings;
  const isElsewhere = runsElsewhere(settings);
  const trial = { batchDependent, maxBatchSize };
  const spec = await resolveModel(model, {
    device: settings.inferenceDevice,
    intraOpNumThreads: threadsPerWorker(settings),
    python: {
      interpreter: settings.python,
      instances: isElsewhere ? 1 : settings.workers,
      niceness,
      secrets: secretVariables,
      log,
    },
    ...trial,
  });
  if (isElsewhere) {
    // A gateway has learnt what the model takes, and runs none.
    if ("executor" in spec) await spec.executor.close();
    return spec;
  }
  const version = settings.modelVersion ?? (settings.natsUrl === undefined ? undefined : await contentHash(model));
  const versioned = { ...spec, version };
  // An open executor has been tried out already.
  const isTriedOut = "workerUrl" in versioned && spec.input.kind === "json";
  return isTriedOut ? tryOutModule(versioned, { open: workersOf(settings), ...trial }) : versioned;
}

function definitionFor({ name, settings: own }: ModelEntry, spec: ModelSpec, shared: Settings): ModelDefinition {
  const definition = definitionOf({ ...spec, name: name ?? spec.name }, { ...shared, ...own });
  return { ...definition, settings: { ...own, ...definition.settings } };
}
