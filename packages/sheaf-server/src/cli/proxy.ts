import type { Command } from "commander";
import { ConfigError } from "../settings/config.ts";
import { proxyDefaults, type Setting, type Settings } from "../settings/settings.ts";
import { serveUntilSignal } from "./signals.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { running, type RunCommand } from "./shared/command.ts";
import { commandWithSettings, configOf } from "./shared/setting-options.ts";

const notOfProxy: readonly (keyof Settings)[] = ["maxTextChars", "apiKey", "grpcPort", "recordFile", "httpProcesses"];

/** The proxy leaves out flags for models, their texts and protocols, and for a fleet. */
const isOfProxy = ({ name, group }: Setting): boolean =>
  group !== "Models and workers" && group !== "Fleet" && !notOfProxy.includes(name);

/** `sheaf proxy --upstream URL`: runs until SIGTERM or SIGINT. Exits with 0 if everything accepted was answered. */
export const proxy: RunCommand = running(proxyCommand, async (command) => {
  const { settings } = await configOf(command, proxyDefaults);
  const { upstream, apiKey } = settings;
  if (upstream === undefined)
    throw new ConfigError("Name the upstream: --upstream https://api.openai.com/v1 (or UPSTREAM).");
  if (apiKey !== undefined)
    throw new ConfigError(
      "sheaf proxy does not use API_KEY: callers send the upstream's keys, which it forwards, or keys of API_KEYS_FILE.",
    );
  if (settings.recordFile !== undefined) throw new ConfigError("sheaf proxy records no calls: remove RECORD_FILE.");
  if (settings.httpProcesses !== 1)
    throw new ConfigError(
      "sheaf proxy runs in one process, which has the limits of all its callers: remove HTTP_PROCESSES.",
    );
  if (settings.cacheDir !== undefined)
    throw new ConfigError("sheaf proxy keeps its cache in memory: remove CACHE_DIR.");
  if ((settings.apiKeysFile === undefined) !== (settings.upstreamApiKey === undefined))
    throw new ConfigError(
      "sheaf proxy needs both API_KEYS_FILE and UPSTREAM_API_KEY, or neither: callers send keys of the file, and the upstream gets its own.",
    );
  const { createProxy } = await import("../proxy/proxy.ts");
  const gateway = await createProxy({ upstream, settings });
  const listen = async (): Promise<void> => {
    const url = await gateway.listen();
    gateway.app.log.info({ upstream }, `listening on ${url}`);
  };
  return serveUntilSignal({ ...gateway, listen, ready: () => Promise.resolve(), abandon: noWorkers });
});

export function proxyCommand(streams: CommandStreams): Command {
  return commandWithSettings(
    "proxy",
    "A gateway for an OpenAI-compatible API: embeddings of many requests share few requests to it.",
    streams,
    { defaults: proxyDefaults, isShown: isOfProxy },
  );
}

/** The proxy has no native code to wait for. */
const noWorkers = (): Promise<void> => Promise.resolve();
