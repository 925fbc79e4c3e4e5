import type { Command } from "commander";
import { ConfigError } from "../settings/config.ts";
import { proxyDefaults, type Setting, type Settings } from "../settings/settings.ts";
import { serveUntilSignal } from "./signals.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { running, type RunCommand } from "./shared/command.ts";
import { commandWithSettings, configOf } from "./shared/setting-options.ts";

const notOfProxy: readonly (keyof Settings)[] = ["maxTextChars", "apiKey", "grpcPort"];

/** Flags that a gateway has no use for are not its flags: those of models, of their texts and protocols, and of a fleet. */
const isOfProxy = ({ name, group }: Setting): boolean =>
  group !== "Models and workers" && group !== "Fleet" && !notOfProxy.includes(name);

/** `sheaf proxy --upstream URL`: passes on until SIGTERM or SIGINT. Gives 0 when everything accepted was answered. */
export const proxy: RunCommand = running(proxyCommand, async (command) => {
  const { settings } = await configOf(command, proxyDefaults);
  const { upstream, apiKey } = settings;
  if (upstream === undefined)
    throw new ConfigError("Say where requests go: --upstream https://api.openai.com/v1 (or UPSTREAM).");
  if (apiKey !== undefined)
    throw new ConfigError(
      "API_KEY is not for sheaf proxy: callers send the upstream's own keys, which it passes on, or those of API_KEYS_FILE.",
    );
  if ((settings.apiKeysFile === undefined) !== (settings.upstreamApiKey === undefined))
    throw new ConfigError(
      "API_KEYS_FILE and UPSTREAM_API_KEY go together for sheaf proxy: callers send keys of the file, and the upstream gets its own.",
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

/** Nothing of the process runs in native code. */
const noWorkers = (): Promise<void> => Promise.resolve();
