// What the reference pages must say, read from the code.
import { readFileSync } from "node:fs";
import { root } from "./files.mjs";
import { withoutComments } from "./imports.mjs";

const sourceOf = (path) => withoutComments(readFileSync(`${root}/packages/${path}`, "utf8"));

/** The codes of `BatcherError`. */
export function errorCodes() {
  const [, union] = /export type ErrorCode =([^;]+);/.exec(sourceOf("sheaf/src/core/errors.ts"));
  return [...union.matchAll(/"([A-Z_]+)"/g)].map(([, code]) => code);
}

/** The properties of an options interface of the core, each with its default; undefined where it has none. */
export async function batcherOptions(interfaceName) {
  const [, body] = new RegExp(`export interface ${interfaceName}\\b[^{]*\\{([^]*?)\\n\\}`).exec(
    sourceOf("sheaf/src/core/options.ts"),
  );
  const { optionDefaults } = await import(`${root}/packages/sheaf/dist/core/options.js`);
  return new Map([...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => [name, optionDefaults[name]]));
}

/**
 * The properties of an options interface of `packages/`, each with the default that its own comment gives: a number, a text,
 * or undefined for none and for what prose says.
 */
export function optionsOf(path, interfaceName) {
  const source = readFileSync(`${root}/packages/${path}`, "utf8");
  const [, body] = new RegExp(`export interface ${interfaceName}\\b[^{]*\\{([^]*?)\\n\\}`).exec(source);
  const property = /(?:^ {2}\/\*\*((?:(?!\*\/)[^])*)\*\/\n)?^ {2}readonly (\w+)\??:/gm;
  return new Map([...body.matchAll(property)].map(([, comment = "", name]) => [name, defaultIn(comment)]));
}

function defaultIn(comment) {
  const text = comment.replaceAll(/\s*\n\s*\*\s?/g, " ");
  const [, quoted] = /`"([^"`]+)"` \(default\)|Default `"([^"`]+)"`/.exec(text)?.filter(Boolean) ?? [];
  const [, number] = /Default (\d+(?:,\d{3})*(?:\.\d+)?)(?=[.; ]|,(?! \d))/.exec(text) ?? [];
  return quoted ?? (number === undefined ? undefined : Number(number.replaceAll(",", "")));
}

/** The server's environment variables, each with its default; undefined where it has none. */
export async function serverVariables() {
  const { settingsTable } = await import(`${root}/packages/sheaf-server/dist/server/settings.js`);
  const isNone = (value) => Array.isArray(value) && value.length === 0;
  return new Map(settingsTable.map(({ env, default: value }) => [env, isNone(value) ? undefined : value]));
}

/**
 * The properties of options interfaces of adapters, given as [path below adapters, name …]; each with the default that a
 * function of these files gives it, the first of several, undefined where none does.
 */
export function adapterOptions(...interfaces) {
  const sources = interfaces.map(([path]) => sourceOf(`sheaf/src/adapters/${path}`));
  const defaults = new Map();
  for (const [, list] of sources.join("\n").matchAll(/const \{([^{}]+)\} = options;/g))
    for (const [, name, literal] of list.matchAll(/(\w+)(?:: \w+)? = ("[^"]*"|[\d_]+)/g))
      if (!defaults.has(name)) defaults.set(name, JSON.parse(literal.replaceAll(/(?<=\d)_(?=\d)/g, "")));
  const properties = interfaces.flatMap(([, ...names], index) =>
    names.flatMap((name) => {
      const [, body] = new RegExp(`export interface ${name}\\b[^{]*\\{([^]*?)\\n\\}`).exec(sources[index]);
      return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, property]) => property);
    }),
  );
  return new Map(properties.map((property) => [property, defaults.get(property)]));
}
