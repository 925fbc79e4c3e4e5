import { builtinModels } from "../runners/builtin.ts";
import type { ModelSpec } from "../runners/model-spec.ts";
import type { ModelEntry } from "../server/config.ts";
import type { ModelDefinition } from "../server/model.ts";
import type { Settings } from "../server/settings.ts";
import { definitionOf } from "../server/worker-model.ts";
import { serveUntilSignal } from "./signals.ts";
import { commandWithSettings, configOf, runCommand } from "./setting-options.ts";

const defaultModels: readonly ModelEntry[] = [{ model: "use-lite", settings: {} }];

/**
 * `sheaf serve [model …]`: serves until SIGTERM or SIGINT. Gives 0 when everything accepted was answered, 1 when the
 * grace period cut some off or a model did not load.
 */
export function serve(words: readonly string[]): Promise<number> {
  const command = commandWithSettings("serve", "Serves models over HTTP, each in dynamic batches of its own.");
  command.argument("[model...]", `what to serve: ${Object.keys(builtinModels).join(", ")} (default: use-lite)`);
  return runCommand(command, words, async () => {
    const { settings, models } = await configOf(command);
    const named = command.args.map((model) => ({ model, settings: {} }));
    const entries: readonly ModelEntry[] = [named, models, defaultModels].find(({ length }) => length > 0)!;
    // Only now: `serve --help` answers without an HTTP server in memory.
    const { createServer } = await import("../server/server.ts");
    const server = await createServer({ models: entries.map((entry) => definitionFor(entry, settings)), settings });
    return serveUntilSignal(server);
  });
}

function definitionFor({ model, name, settings: own }: ModelEntry, shared: Settings): ModelDefinition {
  const settings = { ...shared, ...own };
  const spec = specOf(model, settings);
  return { ...definitionOf({ ...spec, name: name ?? spec.name }, settings), settings: own };
}

function specOf(model: string, { inferenceDevice }: Settings): ModelSpec {
  const builtin = Object.hasOwn(builtinModels, model) ? builtinModels[model as keyof typeof builtinModels] : undefined;
  if (builtin !== undefined) return builtin({ device: inferenceDevice });
  throw new Error(`There is no model ${model}; there are: ${Object.keys(builtinModels).join(", ")}.`);
}
