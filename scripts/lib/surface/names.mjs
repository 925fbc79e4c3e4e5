// The names that a program or an editor sees: exports, their members and options, from the declaration files.
import ts from "typescript-5.2";
import { exportsOf, isMethod } from "../public-signatures.mjs";
import { deprecated, overload } from "./shapes.mjs";

/**
 * Every export of some entry points and every member of an exported type, each once, under the type that declares it:
 * "sheaf createBatcher" → "function (run, options?)", "sheaf Batcher.flush" → "method ()",
 * "sheaf BatcherOptions.maxBatchSize" → "optional = 32", `sheaf BatcherOptions.onBatchError "bisect"` → "value". A default
 * is part of it where it is a number, a text or a boolean.
 */
export function publicNames(points) {
  const { named } = exportsOf(points);
  const names = new Map();
  const add = (name, shape) => {
    const known = names.get(name)?.split(overload) ?? [];
    names.set(name, [...new Set([...known, shape])].join(overload));
  };
  for (const point of points)
    for (const [name, { declarations = [] }] of named(point))
      for (const declaration of declarations) {
        add(`${point.specifier} ${name}`, markOf(declaration) + shapeOf(declaration));
        addMembers(declaration, `${point.specifier} ${name}`, add);
      }
  return Object.fromEntries(names);
}

const markOf = (node) => (ts.getJSDocDeprecatedTag(node) === undefined ? "" : deprecated);

/** The kind of an export, with its parameters or the types that it extends. */
function shapeOf(node) {
  if (ts.isFunctionDeclaration(node)) return `function ${parametersOf(node)}`;
  if (ts.isVariableDeclaration(node))
    return node.type && ts.isFunctionTypeNode(node.type) ? `function ${parametersOf(node.type)}` : "constant";
  const kind = ts.isClassDeclaration(node) ? "class" : "type";
  const bases = (node.heritageClauses ?? []).flatMap(({ types }) => types.map((type) => flat(type.getText())));
  return [kind, ...bases.map((base) => `extends ${base}`)].join(" ");
}

const flat = (text) => text.replaceAll(/\s+/g, " ").trim();

const parametersOf = ({ parameters }) =>
  `(${parameters
    .filter(({ name }) => name.getText() !== "this")
    .map(({ name, dotDotDotToken, questionToken }) => {
      const text = ts.isIdentifier(name) ? name.text : "options";
      return `${dotDotDotToken ? "..." : ""}${text}${questionToken ? "?" : ""}`;
    })
    .join(", ")})`;

const isMember = (node) =>
  ts.isPropertySignature(node) || ts.isPropertyDeclaration(node) || isMethod(node) || ts.isGetAccessorDeclaration(node);

/** Types that are written with texts as arguments, such as `Omit<Options, "name">`: these texts are not values. */
const isTypeWithNames = (node) => ts.isTypeReferenceNode(node) || ts.isExpressionWithTypeArguments(node);

function addMembers(node, path, add) {
  ts.forEachChild(node, (child) => {
    if (isMember(child)) {
      if (ts.isPrivateIdentifier(child.name) || isPrivate(child)) return;
      const name = `${path}.${ts.isComputedPropertyName(child.name) ? child.name.getText() : child.name.text}`;
      add(name, markOf(child) + memberShape(child));
      addMembers(child, name, add);
    } else if (ts.isLiteralTypeNode(child) && ts.isStringLiteral(child.literal)) {
      add(`${path} "${child.literal.text}"`, "value");
    } else if (!isTypeWithNames(child)) addMembers(child, path, add);
  });
}

const isPrivate = ({ modifiers = [] }) => modifiers.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);

function memberShape(node) {
  if (isMethod(node)) return `method ${parametersOf(node)}`;
  const value = defaultOf(node);
  return `${node.questionToken ? "optional" : "required"}${value === undefined ? "" : ` = ${value}`}`;
}

function defaultOf(node) {
  const tag = ts.getJSDocTags(node).find(({ tagName }) => tagName.text === "default");
  const text = ts.getTextOfJSDocComment(tag?.comment) ?? "";
  return /^(?:"[^"]*"|-?\d[\d.]*\d|-?\d|true|false|Infinity)(?=$|[\s,;:.])/.exec(text)?.[0];
}
