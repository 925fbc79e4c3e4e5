import type { Command } from "commander";
import { within } from "sheaf/internal";
import { builtinModels } from "../runners/builtin.ts";
import { checkModelWord } from "../runners/resolve-model.ts";
import { ConfigError, type ModelEntry } from "../settings/config.ts";
import type { Settings } from "../settings/settings.ts";
import type { RunningServer } from "../server/server.ts";
import { isModelsFolder } from "../server/models/repository/folder.ts";
import { fileSource, isLearntFromWorkers, nameOf } from "../server/models/file-source.ts";
import { roleOf } from "../settings/role.ts";
import { processesOf } from "./processes/count.ts";
import { serveUntilSignal } from "./signals.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { running, type RunCommand } from "./shared/command.ts";
import { refuseSharedNames } from "../server/models/repository/model-names.ts";
import { commandWithSettings, configOf } from "./shared/setting-options.ts";

/**
 * `sheaf serve [model …]`: serves until SIGTERM or SIGINT. Exits with 0 if everything accepted was answered, 1 if the grace period
 * cut requests off or a model did not load.
 */
export const serve: RunCommand = running(serveCommand, async (command) => {
  const { settings, models } = await configOf(command);
  const named = command.args.map((model) => ({ model, settings: {} }));
  const entries: readonly ModelEntry[] = named.length > 0 ? named : models;
  if (settings.role !== "all" && settings.natsUrl === undefined)
    throw new ConfigError(`A ${settings.role} needs NATS_URL, the queue of its fleet.`);
  if (roleOf(settings) === "worker" && settings.grpcPort !== undefined)
    throw new ConfigError("A worker does not use GRPC_PORT: it takes items from the queue. Set it for gateways.");
  const served = withoutFolder(entries, settings);
  // Before a port opens, so that nobody waits for a misspelt model.
  for (const entry of served.entries) if (!isLearntFromWorkers(entry, settings)) await checkModelWord(entry.model);
  await refuseSharedNames(served.entries, served.folder);
  const httpProcesses = processesOf(settings);
  if (httpProcesses === 1) return serveModels(served, { ...settings, httpProcesses });
  const { superviseProcesses } = await import("./processes/supervisor.ts");
  return superviseProcesses(served, served.entries.map(nameOf), { ...settings, httpProcesses });
});

export function serveCommand(streams: CommandStreams): Command {
  return commandWithSettings(
    "serve",
    "Serves models over HTTP and gRPC, each in dynamic batches of its own.",
    streams,
    {
      isShown: ({ group }) => group !== "Upstream",
    },
  ).argument(
    "[model...]",
    `what to serve: ${Object.keys(builtinModels).join(", ")}, an .onnx file, a model folder, a Python file (.py), a worker module (.js) or a folder of such models (default: use-lite)`,
  );
}

export interface ServedEntries {
  readonly entries: readonly ModelEntry[];
  /** A folder of models, with settings of its own for all of them. */
  readonly folder: ModelEntry | undefined;
}

/** @throws {ConfigError} for two folders of models, or for settings that a folder rules out or requires. */
function withoutFolder(all: readonly ModelEntry[], settings: Settings): ServedEntries {
  const folders = all.filter(({ model }) => isModelsFolder(model));
  const [folder, second] = folders;
  if (second !== undefined)
    throw new ConfigError(`${folder!.model} and ${second.model} are both folders of models; a server takes one.`);
  if (folder?.name !== undefined)
    throw new ConfigError(
      `${folder.model} is a folder of models, whose names come from its files; remove the name ${folder.name}.`,
    );
  if (folder !== undefined && settings.modelVersion !== undefined)
    throw new ConfigError(
      "MODEL_VERSION cannot be combined with a folder of models, whose versions are known by their content.",
    );
  if (folder === undefined && settings.watch)
    throw new ConfigError("WATCH needs a folder of models: sheaf serve models/ --watch");
  return { entries: all.filter((entry) => entry !== folder), folder };
}

/** How the hub of several processes differs from a server of one. */
export interface HubPart {
  /** Its socket for the calls of fronts. */
  readonly hubPath: string;
  /** Its socket for requests that they pass on. */
  readonly httpPath: string;
  /** Where it gets its signals from. */
  readonly signals: NodeJS.EventEmitter;
  /** What is left of the time for a shutdown. */
  readonly graceMs: () => number;
  /** Called when its models are ready, and all fronts take requests for them. */
  readonly onReady: () => void;
}

export async function serveModels(
  { entries, folder }: ServedEntries,
  settings: Settings,
  part?: HubPart,
): Promise<number> {
  // Imported late, so that `serve --help` needs no HTTP server in memory.
  const { openApp } = await import("../http/app.ts");
  const { Callers } = await import("../tenants/callers.ts");
  const { listenDuringStartup } = await import("../server/startup-listener.ts");
  const app = openApp(settings);
  // A gateway loads no model and starts within moments.
  const holdMs = roleOf(settings) === "gateway" ? settings.natsHoldMs : 0;
  const names = entries.map(nameOf);
  const callers = new Callers(settings, app.log);
  const early = await listenDuringStartup(app, { settings, callers, models: names, holdMs, path: part?.httpPath });
  if (part === undefined) app.log.info({ models: names }, `listening on ${early.url}`);
  let server: RunningServer;
  try {
    const { serverOn } = await import("../server/server.ts");
    const { warmUpHttp } = await import("../server/warm-up-http.ts");
    const { modelOutput } = await import("../observe/log.ts");
    // All at once: each loads by itself.
    const models = entries.map((entry) => fileSource(entry, settings, modelOutput(app.log, nameOf(entry))));
    server = await serverOn(app, { models, settings, callers, modelsFolder: folder, hubPath: part?.hubPath });
    await app.ready();
    // If it fails, the first requests only cost more.
    if (part === undefined) warmUpHttp(settings, app.server).catch(() => undefined);
  } catch (error) {
    early.close();
    throw error;
  }
  return serveUntilSignal(
    {
      ...server,
      listen: async () => {
        await within(server.ready(), holdMs);
        early.open();
      },
      ready: async () => {
        await server.ready();
        await server.hub?.followed(settings.httpProcesses as number);
        part?.onReady();
      },
      close: (options) => server.close(options ?? { graceMs: part?.graceMs() }),
      abandon: () => server.models.abandon(),
    },
    part?.signals,
  );
}
