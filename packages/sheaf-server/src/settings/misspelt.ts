import { editsBetween } from "sheaf/internal";
import { settingsTable } from "./settings.ts";

/** A variable that is not a setting, and the setting that was probably meant. */
export interface Misspelt {
  readonly given: string;
  readonly meant: string;
}

const variables = settingsTable.map(({ env }) => env);

/**
 * Variables of the environment that are nearly settings, such as `MAX_BATCHSIZE`. Most of an environment belongs to other
 * programs: a short or a distant name is not a mistake (`NODE_VERSION` is two letters from `MODEL_VERSION`).
 */
export function misspeltVariables(environment: Readonly<Record<string, string | undefined>>): Misspelt[] {
  const unknown = Object.keys(environment).filter((name) => environment[name] !== "" && !variables.includes(name));
  return unknown.flatMap((given) => {
    const meant = variables.find((variable) => isNearly(given, variable));
    // Both may be set: another program's variable, then, or a harmless rest.
    return meant === undefined || (environment[meant] ?? "") !== "" ? [] : [{ given, meant }];
  });
}

/** The letters alone: `Max-BatchSize` and `MAX_BATCH_SIZE` are the same name. */
const lettersOf = (name: string): string => name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "");

function isNearly(given: string, variable: string): boolean {
  const [from, to] = [lettersOf(given).replace(/^SHEAF/, ""), lettersOf(variable)];
  if (from === to) return true;
  if (to.length < 8 || Math.abs(from.length - to.length) > 2) return false;
  // A unit that was left out, and words or letters in another order, such as MAX_QUEUE_SIZE.
  if (`${from}MS` === to || sorted(from) === sorted(to)) return true;
  return editsBetween(from, to) <= (to.length < 14 ? 1 : 2);
}

const sorted = (text: string): string => text.split("").sort().join("");
