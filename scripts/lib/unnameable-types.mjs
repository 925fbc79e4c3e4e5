// The types that a public signature names and a user cannot import. Read by the oldest compiler that we promise: the
// current one has no API for it.
import ts from "typescript-5.2";

/** Every entry point builds on `sheaf`; and an `Executor`, which `sheaf` takes, gets a handle that its authors import. */
const alsoImportable = ["sheaf", "sheaf/executors"];

const options = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.esnext.disposable.d.ts"],
  types: [],
};

/**
 * For every entry point `{ specifier, types }`, its types that neither it nor `alsoImportable` exports, as
 * "specifier: Name of exportedName". Type parameters, and types of others than these packages, do not count.
 */
export function unnameableTypes(points) {
  const program = ts.createProgram(
    points.map(({ types }) => types),
    options,
  );
  const checker = program.getTypeChecker();
  const resolved = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
  const exportsOf = ({ types }) =>
    checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(types))).map(resolved);
  const common = points.filter(({ specifier }) => alsoImportable.includes(specifier)).flatMap(exportsOf);

  return points.flatMap((point) => {
    const exported = exportsOf(point);
    const importable = new Set([...common, ...exported]);
    const isOurs = ({ declarations = [] }) =>
      /\/dist\/.*\.d\.ts$/.test(declarations[0]?.getSourceFile().fileName ?? "");
    const isMissing = (symbol) =>
      !importable.has(symbol) && !(symbol.flags & ts.SymbolFlags.TypeParameter) && isOurs(symbol);
    const missing = exported.flatMap(({ name, declarations = [] }) =>
      declarations
        .flatMap(namesOfTypes)
        .map((node) => checker.getSymbolAtLocation(node))
        .filter((symbol) => symbol !== undefined && isMissing(resolved(symbol)))
        .map((symbol) => `${point.specifier}: ${symbol.name} of ${name}`),
    );
    return [...new Set(missing)];
  });
}

/** The names of types below a declaration. */
function namesOfTypes(node) {
  const own = ts.isTypeReferenceNode(node)
    ? [node.typeName]
    : ts.isExpressionWithTypeArguments(node)
      ? [node.expression]
      : [];
  const below = [];
  ts.forEachChild(node, (child) => void below.push(...namesOfTypes(child)));
  return [...own, ...below];
}
