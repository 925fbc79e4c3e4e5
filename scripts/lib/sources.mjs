// What the reference pages must say, read from the code.
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { runInNewContext } from "node:vm";
import { Visitor } from "oxc-parser";
import { filesBelow, root } from "./files.mjs";
import { parsed } from "./imports.mjs";
import { exportedNames } from "./public-exports.mjs";

const moduleAt = (path) => parsed(readFileSync(`${root}/packages/${path}`, "utf8"), path);

/** The codes of `BatcherError`. */
export function errorCodes() {
  const codes = [];
  new Visitor({
    TSTypeAliasDeclaration({ id, typeAnnotation }) {
      if (id.name === "ErrorCode") codes.push(...typeAnnotation.types.map(({ literal }) => literal.value));
    },
  }).visit(moduleAt("sheaf/src/core/contract/errors.ts").program);
  return codes;
}

/** The source that declares an options interface of the core. */
export const optionsFile = (interfaceName) =>
  `sheaf/src/core/contract/${interfaceName === "RateLimit" ? "rate-limit" : "options"}.ts`;

/** The properties of an options interface of the core, each with its default; undefined where it has none. */
export async function batcherOptions(interfaceName) {
  const properties = propertiesOf(optionsFile(interfaceName), interfaceName);
  const { defaults, defaultChoices } = await import(`${root}/packages/sheaf/dist/core/contract/options.js`);
  return new Map(properties.map(({ name }) => [name, { ...defaults, ...defaultChoices }[name]]));
}

/** The properties of an interface below `packages/`, each with the text of its `@default`; undefined without one. */
export const defaultTags = (path, interfaceName) =>
  new Map(propertiesOf(path, interfaceName).map(({ name, comment }) => [name, tagIn(comment)]));

/** The value of an object literal that a module of `packages/` keeps in a constant, for itself. */
export function literalIn(path, constant) {
  const source = readFileSync(`${root}/packages/${path}`, "utf8");
  let text;
  new Visitor({
    VariableDeclarator({ id, init }) {
      if (id.name !== constant) return;
      const { start, end } = init.type === "TSAsExpression" ? init.expression : init;
      text = source.slice(start, end);
    },
  }).visit(parsed(source, path).program);
  return runInNewContext(`(${text})`);
}

const tagIn = (comment) => /@default (.+?)(?: \*\/)?\s*$/m.exec(comment)?.[1];

/**
 * The properties of an options interface of `packages/`, each with the `@default` of its comment: a number or a text that
 * it begins with; undefined for none and for prose.
 */
export function optionsOf(path, interfaceName) {
  return new Map(propertiesOf(path, interfaceName).map(({ name, comment }) => [name, defaultIn(comment)]));
}

function defaultIn(comment) {
  const [literal] = /^(?:"[^"]*"|[\d.]+)(?=$|, (?!\d))/.exec(tagIn(comment) ?? "") ?? [];
  return literal && JSON.parse(literal);
}

/** The server's environment variables, each with its default; undefined where it has none. */
export async function serverVariables() {
  const { settingsTable } = await import(`${root}/packages/sheaf-server/dist/settings/settings.js`);
  const isNone = (value) => Array.isArray(value) && value.length === 0;
  return new Map(settingsTable.map(({ env, default: value }) => [env, isNone(value) ? undefined : value]));
}

/**
 * The properties of options interfaces of adapters, given as [path below adapters, name …]; each with the default that a
 * function of these files gives it, the first of several, undefined where none does.
 */
export function adapterOptions(...interfaces) {
  const defaults = new Map();
  for (const [path] of interfaces)
    for (const [name, value] of defaultsInDestructuring(`sheaf/src/adapters/${path}`))
      if (!defaults.has(name)) defaults.set(name, value);
  const properties = interfaces.flatMap(([path, ...names]) =>
    names.flatMap((name) => propertiesOf(`sheaf/src/adapters/${path}`, name)),
  );
  return new Map(properties.map(({ name }) => [name, defaults.get(name)]));
}

/** The files of policies that take options, each with the name of its options: a policy `even` has `EvenOptions`. */
export function policyOptions() {
  const folder = "packages/sheaf/src/";
  const files = filesBelow(`${folder}policies`, ".ts").map((file) => relative(root, file).slice(folder.length));
  return Object.fromEntries(
    files.flatMap((file) => {
      const exported = exportedNames(readFileSync(`${root}/${folder}${file}`, "utf8"), file);
      return exported
        .filter((name) => /^type \w+Options$/.test(name))
        .map((name) => [file, name.slice("type ".length)]);
    }),
  );
}

/** The properties that an interface declares itself, each with the comment before it. */
export function propertiesOf(path, interfaceName) {
  const { program, comments } = moduleAt(path);
  let found;
  new Visitor({
    TSInterfaceDeclaration({ id, body }) {
      if (id.name === interfaceName) found = body;
    },
  }).visit(program);
  if (found === undefined) throw new Error(`${path} declares no interface ${interfaceName}`);
  let endBefore = found.start;
  return found.body
    .filter(({ type }) => type === "TSPropertySignature")
    .map(({ key, optional, start, end }) => {
      const before = comments.filter((comment) => comment.start >= endBefore && comment.end <= start);
      endBefore = end;
      return { name: key.name, isOptional: optional, comment: before.at(-1)?.value ?? "" };
    });
}

/** The literal defaults in `const { name = literal } = options`, in the order of the file. */
function defaultsInDestructuring(path) {
  const defaults = [];
  new Visitor({
    VariableDeclarator({ id, init }) {
      if (id.type !== "ObjectPattern" || init?.name !== "options") return;
      for (const { key, value } of id.properties)
        if (value?.type === "AssignmentPattern" && value.right.type === "Literal")
          defaults.push([key.name, value.right.value]);
    },
  }).visit(moduleAt(path).program);
  return defaults;
}
