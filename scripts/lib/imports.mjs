import { Visitor, parseSync } from "oxc-parser";

/** The syntax tree (ESTree with TypeScript) of a module's source, with its comments. */
export function parsed(source, name = "module.ts") {
  const result = parseSync(name, source);
  const [error] = result.errors;
  if (error !== undefined) throw new SyntaxError(`${name}: ${error.message}`);
  return result;
}

/** Every module that a TypeScript or JavaScript source names: static, dynamic, type-only, re-exports and worker URLs. */
export const importsOf = (source, name) => [...specifiersOf(source, name).keys()];

/** The modules that run when this one does: all of the above but those that only types name. */
export const runtimeImportsOf = (source, name) =>
  [...specifiersOf(source, name)].filter(([, runs]) => runs).map(([specifier]) => specifier);

const known = new Map();

/** Each named module, with whether it is imported at run time. */
function specifiersOf(source, name) {
  if (known.has(source)) return known.get(source);
  const specifiers = new Map();
  known.set(source, specifiers);
  const add = (node, isType = false) => {
    const specifier = textOf(node);
    if (specifier !== undefined) specifiers.set(specifier, !isType || specifiers.get(specifier) === true);
  };
  const { program } = parsed(source, name);
  new Visitor({
    ImportDeclaration: (node) => add(node.source, node.importKind === "type"),
    ExportNamedDeclaration: (node) => node.source && add(node.source, node.exportKind === "type"),
    ExportAllDeclaration: (node) => add(node.source, node.exportKind === "type"),
    ImportExpression: (node) => add(node.source),
    TSImportType: (node) => add(node.source ?? node.argument, true),
    CallExpression: ({ callee, arguments: [first] }) => callee.name === "require" && first && add(first),
    NewExpression: ({ callee, arguments: [first, base] }) =>
      callee.name === "URL" && base?.type === "MemberExpression" && isRelative(first) && add(first),
  }).visit(program);
  return specifiers;
}

/** Whether a module reads the process's environment variables. */
export function readsEnvironment(source, name) {
  let reads = false;
  new Visitor({
    MemberExpression({ object, property }) {
      if (object.name === "process" && (property.name ?? property.value) === "env") reads = true;
    },
    ImportDeclaration({ source: from, specifiers }) {
      if (/^(?:node:)?process$/.test(from.value)) reads ||= specifiers.some(({ imported }) => imported?.name === "env");
    },
  }).visit(parsed(source, name).program);
  return reads;
}

const isRelative = (node) => textOf(node)?.startsWith(".") === true;

/** A string or a template as written, with its placeholders; undefined for any other expression. */
function textOf(node) {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "TSLiteralType") return textOf(node.literal);
  if (node.type !== "TemplateLiteral") return undefined;
  return node.quasis
    .map(({ value }, index) => value.raw + (node.expressions[index] ? `\${${node.expressions[index].name}}` : ""))
    .join("");
}
