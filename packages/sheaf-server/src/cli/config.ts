import type { Command } from "commander";
import type { LoadedConfig } from "../settings/config.ts";
import { settingsTable } from "../settings/settings.ts";
import { masked } from "../shared/masked.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { running, type RunCommand } from "./shared/command.ts";
import { commandWithSettings, configOf } from "./shared/setting-options.ts";

interface Row {
  readonly name: string;
  readonly env: string;
  readonly value: string | number | boolean | readonly string[] | null;
  readonly origin: string;
}

/** `sheaf config`: prints every setting, its value and where it came from; takes the flags of `sheaf serve`. */
export const config: RunCommand = running(configCommand, async (command) => {
  const loaded = await configOf(command);
  const rows = rowsOf(loaded);
  if (command.opts<{ json?: true }>().json === true) {
    const { file = null, models, modelsOrigin } = loaded;
    console.log(JSON.stringify({ file, models, modelsOrigin, settings: rows }, undefined, 2));
  } else {
    const names = loaded.models.map(({ name, model }) => (name === undefined ? model : `${name} (${model})`));
    console.log(tableOf([...rows, { env: "models", value: names, origin: loaded.modelsOrigin }]));
    if (loaded.file !== undefined) console.log(`\nconfig file: ${loaded.file}`);
  }
  return 0;
});

export function configCommand(streams: CommandStreams): Command {
  const description = "Prints every setting and the source of its value.";
  return commandWithSettings("config", description, streams).option("--json", "print as JSON");
}

function rowsOf({ settings, origins }: LoadedConfig): Row[] {
  return settingsTable.map(({ name, env, isSecret }) => {
    const value = settings[name];
    const shown = typeof value === "string" ? masked(value) : value;
    return { name, env, value: isSecret && value !== undefined ? "(set)" : (shown ?? null), origin: origins[name] };
  });
}

function tableOf(rows: readonly Omit<Row, "name">[]): string {
  const cells = rows.map(({ env, value, origin }) => [env, shown(value), origin] as const);
  const widths = [0, 1].map((column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells
    .map(([env, value, origin]) => `${env.padEnd(widths[0]!)}  ${value.padEnd(widths[1]!)}  ${origin}`)
    .join("\n");
}

const shown = (value: Row["value"]): string => (value === null ? "not set" : value.toString() || "none");
