import { Option, type Command } from "commander";
import type { CommandStreams } from "../../shared/terminal.ts";
import { loadConfig, type LoadedConfig, processEnvironment } from "../../settings/config.ts";
import { misspeltVariables } from "../../settings/misspelt.ts";
import { settingsTable, type Setting, type Settings } from "../../settings/settings.ts";
import { newCommand } from "./command.ts";

export interface CommandSettings {
  /** The command's own defaults, if they differ from the table's. */
  readonly defaults?: Partial<Settings> | undefined;
  /** Whether a setting is one of this command's. Default: all are. */
  readonly isShown?: ((setting: Setting) => boolean) | undefined;
}

/** A command with `--config` and one flag per setting. Values stay texts: `loadConfig` checks and names them. */
export function commandWithSettings(
  name: string,
  description: string,
  streams: CommandStreams,
  { defaults = {}, isShown = () => true }: CommandSettings = {},
): Command {
  const command = newCommand(name, streams)
    .description(description)
    .option("--config <file>", "config file (default: sheaf.config.json or sheaf.config.js, if there is one)");
  for (const setting of settingsTable.filter(isShown))
    command.addOption(new SettingOption(setting, defaults[setting.name] ?? setting.default));
  return command;
}

export class SettingOption extends Option {
  readonly setting: Setting;

  constructor(setting: Setting, value: Setting["default"]) {
    const { flag, env, group, valueName, description, range, isSecret } = setting;
    const shown = isSecret ? "" : (value?.toString() ?? "");
    const values = range === undefined ? "" : ` Values: ${range}.`;
    const source = shown === "" ? env : `${env}, default ${shown}`;
    super(valueName === "" ? flag : `${flag} <${valueName}>`, `${description}${values} (${source})`);
    this.setting = setting;
    this.helpGroup(`${group}:`);
  }
}

/**
 * Settings from the command's flags, the environment and the config file. Warns of variables that are nearly settings.
 * @throws {ConfigError}
 */
export function configOf(command: Command, defaults?: Partial<Settings>): Promise<LoadedConfig> {
  for (const { given, meant } of misspeltVariables(processEnvironment))
    command
      .configureOutput()
      .writeErr?.(`${command.name()}: warning: the variable ${given} is not a setting; did you mean ${meant}?\n`);
  const { config, json: _, ...flags } = command.opts<Record<string, unknown>>();
  return loadConfig({ flags, file: config as string | undefined, defaults });
}
