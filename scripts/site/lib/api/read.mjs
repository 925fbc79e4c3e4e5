// The exports of the packages' entry points, read from their declarations by the compiler that has an API for it.
import ts from "typescript-5.2";
import { exportsOf, namesOfTypes } from "../../../lib/public-signatures.mjs";

const printer = ts.createPrinter({ removeComments: true });

/**
 * The exports of entry points `{ specifier, types }`: for each `{ specifier, exports }`, sorted by name, an export being
 * `{ name, symbol, kind, signatures, members, types }`. `symbol` is the same object wherever it is exported;
 * `signatures` have a `code` and a `doc` each, overloads more than one; `members` are those that have a docstring; `types`
 * are the symbols of the types that it names.
 */
export function readExports(points) {
  const { checker, resolved, named } = exportsOf(points);
  const read = ([name, symbol]) => {
    const nodes = symbol.declarations;
    const types = nodes.flatMap(namesOfTypes).map((node) => checker.getSymbolAtLocation(node));
    return {
      name,
      symbol,
      kind: kindOf(nodes[0]),
      signatures: nodes.map((node) => ({ code: codeOf(node, name), doc: docOf(documentedBy(node, checker), checker) })),
      members: nodes.flatMap((node) => membersOf(node, name, checker)),
      types: [...new Set(types.filter((found) => found !== undefined).map(resolved))].filter((type) => type !== symbol),
    };
  };
  return points.map((point) => ({
    specifier: point.specifier,
    exports: named(point)
      .map(read)
      .sort((a, b) => a.name.localeCompare(b.name)),
  }));
}

function kindOf(node) {
  if (ts.isFunctionDeclaration(node)) return "function";
  if (ts.isClassDeclaration(node)) return "class";
  return ts.isVariableDeclaration(node) ? "value" : "type";
}

/** A declaration under its public name, without its comments and without the words that each of them has. */
const codeOf = (node, name) =>
  `${ts.isVariableDeclaration(node) ? "const " : ""}${printed(node)}`
    .replace(/^(?:export )?(?:declare )?/, "")
    .replace(` ${node.name.getText()}`, ` ${name}`)
    .replaceAll(/\{[^{}]*\}(\??: [A-Z])/g, "options$1")
    .replaceAll(/^( +)readonly /gm, "$1")
    .replaceAll(/^( +[\w"]+\?: .*) \| undefined;$/gm, "$1;");

const printed = (node) => printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile());

/** The signature or symbol that holds the docstring of a node: each overload has its own. */
const documentedBy = (node, checker) =>
  isCallable(node) ? checker.getSignatureFromDeclaration(node) : checker.getSymbolAtLocation(node.name);

const isCallable = (node) =>
  ts.isFunctionDeclaration(node) ||
  ts.isMethodSignature(node) ||
  ts.isMethodDeclaration(node) ||
  ts.isCallSignatureDeclaration(node) ||
  ts.isConstructorDeclaration(node);

/** The members with a docstring, of a declaration and of the object types written in it: `{ path, code, isCalled, doc }`. */
function membersOf(node, path, checker) {
  const own = (node.members ?? []).filter((member) => isCallable(member) || member.name !== undefined);
  const literals = node.members === undefined ? literalsIn(node) : [];
  return [
    ...own.flatMap((member) => {
      const found = memberOf(member, path, checker);
      const isDocumented = found.doc.text !== "" || found.doc.default !== undefined;
      const inner = literalsIn(member).flatMap((literal) => membersOf(literal, found.path, checker));
      return isDocumented ? [found, ...inner] : inner;
    }),
    ...literals.flatMap((literal) => membersOf(literal, path, checker)),
  ];
}

function memberOf(member, path, checker) {
  const name = member.name?.getText() ?? (ts.isConstructorDeclaration(member) ? "constructor" : "()");
  const isCalled = isCallable(member);
  return {
    path: /^\W/.test(name) ? `${path}${name}` : `${path}.${name}`,
    isCalled,
    code: isCalled ? printed(member).replace(/;$/, "") : typeOf(member),
    doc: docOf(documentedBy(member, checker), checker),
  };
}

/** The type of a property, without the `undefined` that every optional one has. */
function typeOf({ type, questionToken }) {
  const text = type === undefined ? "" : printed(type);
  return questionToken === undefined ? text : text.replace(/ \| undefined$/, "");
}

/** The object types written below a node, the outermost ones. */
function literalsIn(node) {
  const found = [];
  ts.forEachChild(node, (child) => void found.push(...(ts.isTypeLiteralNode(child) ? [child] : literalsIn(child))));
  return found;
}

/** The parts of a docstring: its text, and its tags by name. */
function docOf(documented, checker) {
  const tags = documented?.getJsDocTags(checker) ?? [];
  const all = (name) => tags.filter((tag) => tag.name === name).map(({ text }) => ts.displayPartsToString(text).trim());
  return {
    text: ts.displayPartsToString(documented?.getDocumentationComment(checker) ?? []),
    default: all("default")[0],
    params: all("param"),
    returns: all("returns")[0],
    throws: all("throws"),
    see: all("see"),
    examples: all("example"),
  };
}
