// The options of public signatures, read by the oldest compiler that we promise: the current one has no API for it.
import ts from "typescript-5.2";

const compilerOptions = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.esnext.disposable.d.ts"],
  types: [],
};

const isOurs = ({ declarations = [] }) => /\/dist\/.*\.d\.ts$/.test(declarations[0]?.getSourceFile().fileName ?? "");

/**
 * A compiler's view of entry points `{ specifier, types }`: the exports of each with their public names (`named`), or alone
 * (`ofPoint`). Aliases are resolved.
 */
export function exportsOf(points) {
  const program = ts.createProgram(
    points.map(({ types }) => types),
    compilerOptions,
  );
  const checker = program.getTypeChecker();
  const resolved = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
  const named = ({ types }) =>
    checker
      .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(types)))
      .map((symbol) => [symbol.name, resolved(symbol)]);
  const ofPoint = (point) => named(point).map(([, symbol]) => symbol);
  return { checker, resolved, named, ofPoint };
}

/** The names of types below a declaration. */
export function namesOfTypes(node) {
  const own = ts.isTypeReferenceNode(node)
    ? [node.typeName]
    : ts.isExpressionWithTypeArguments(node)
      ? [node.expression]
      : ts.isTypeQueryNode(node)
        ? [node.exprName]
        : [];
  return [...own, ...childrenOf(node).flatMap(namesOfTypes)];
}

function childrenOf(node) {
  const children = [];
  ts.forEachChild(node, (child) => void children.push(child));
  return children;
}

/** Clients of other projects, whose functions Sheaf calls: their options are described by the project. */
const clientsOfOthers = /Like$|^NatsConnection$/;

/**
 * Every optional property of an object of options in a public signature, inherited ones and nested objects included:
 * `{ name: "specifier exportedName.property", tag }`, with the text of its `@default`, undefined without one.
 */
export function publicOptions(points) {
  const { checker, ofPoint } = exportsOf(points);
  return points.flatMap((point) =>
    ofPoint(point)
      .filter(({ name }) => !clientsOfOthers.test(name))
      .flatMap(({ name, declarations = [] }) => {
        const types = declarations
          .flatMap(optionsParameters)
          .flatMap((parameter) => objectsIn(checker.getTypeAtLocation(parameter)));
        return optionsIn(checker, types).map(([path, tag]) => ({ name: `${point.specifier} ${name}.${path}`, tag }));
      }),
  );
}

/** The parameters of the functions below a declaration that take an object of options. */
function optionsParameters(node) {
  const own = (ts.isFunctionLike(node) ? (node.parameters ?? []) : []).filter(
    ({ name, type }) =>
      name.getText() === "options" ||
      ts.isObjectBindingPattern(name) ||
      /(?:Options|Settings|Spec)\b/.test(type?.getText()),
  );
  return [...own, ...childrenOf(node).flatMap(optionsParameters)];
}

/** `[path, tag]` of the optional properties of types; of a nested object, or one in an array, `outer.inner`. */
function optionsIn(checker, types, seen = new Set()) {
  return types
    .flatMap((type) => checker.getPropertiesOfType(type))
    .filter((property) => isOurs(property) && !seen.has(property.declarations[0]))
    .flatMap((property) => {
      seen.add(property.declarations[0]);
      const tag = property.getJsDocTags().find(({ name }) => name === "default");
      const own = isOptional(property) ? [[property.name, tag && ts.displayPartsToString(tag.text)]] : [];
      const inner = objectsIn(checker.getTypeOfSymbol(property)).filter((type) => !isHandedOver(checker, type));
      const nested = optionsIn(checker, inner, seen);
      return [...own, ...nested.map(([path, text]) => [`${property.name}.${path}`, text])];
    });
}

/** The objects that a value of this type may be or, as an array, hold. */
const objectsIn = (type) =>
  (type.isUnion() ? type.types : [type])
    .map((member) => member.getNumberIndexType() ?? member)
    .filter(({ flags }) => flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection));

/** Whether it is a function or has methods, such as a policy or an executor: handed over whole, not filled in. */
function isHandedOver(checker, type) {
  const isFunction = (some) => some.getCallSignatures().length > 0;
  const isRequiredFunction = (property) => !isOptional(property) && isFunction(checker.getTypeOfSymbol(property));
  return isFunction(type) || checker.getPropertiesOfType(type).some(isRequiredFunction);
}

const isOptional = ({ flags }) => (flags & ts.SymbolFlags.Optional) !== 0;
