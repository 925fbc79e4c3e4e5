import { ConfigError, type ModelEntry } from "../../../settings/config.ts";
import { nameOf } from "../file-source.ts";
import { modelsIn } from "./folder.ts";

/**
 * Refuses two models with the same name, because names are part of routes. Two files of one name inside the folder of models are not
 * checked here: there a broken model must not stop the others.
 * @throws {ConfigError} naming both models.
 */
export async function refuseSharedNames(entries: readonly ModelEntry[], folder: ModelEntry | undefined): Promise<void> {
  const modelOf = new Map<string, string>();
  const add = (name: string, model: string): void => {
    const other = modelOf.get(name);
    if (other !== undefined)
      throw new ConfigError(
        `${other} and ${model} are both named ${name}; rename one of them, or give one a name in the config file.`,
      );
    modelOf.set(name, model);
  };
  for (const entry of entries) add(nameOf(entry), entry.model);
  if (folder === undefined) return;
  for (const [name, [path]] of await modelsIn(folder.model)) add(name, path!);
}
