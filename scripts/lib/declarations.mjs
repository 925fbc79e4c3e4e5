// What a program that imports an entry point sees, as one declaration file that can be read in a diff.
import { format, resolveConfig } from "prettier";
import ts from "typescript-5.2";
import { root } from "./files.mjs";
import { entryPoints } from "./public-exports.mjs";
import { exportsOf, namesOfTypes } from "./public-signatures.mjs";

/** Where the record of them is; `node scripts/record.mjs surface` writes it. */
export const declarationsFolder = "test/fixtures/surface";

/** The declarations of every public entry point by file name: `sheaf/node.d.ts` for `sheaf/node`. Needs a build. */
export async function publicDeclarations() {
  const points = ["sheaf", "sheaf-server"].flatMap(entryPoints);
  const options = { ...(await resolveConfig(`${root}/package.json`)), parser: "typescript" };
  const texts = declarationsOf(points).map(async ([name, text]) => [`${name}.d.ts`, await format(text, options)]);
  return Object.fromEntries(await Promise.all(texts));
}

/**
 * `[specifier, text]` of each entry point. A type that another entry point declares is imported from there, and one that
 * none exports is declared without `export`. Of the comments only `@default`, `@deprecated` and `@experimental` are kept.
 */
function declarationsOf(points) {
  const { checker, resolved, named } = exportsOf(points);
  const isOurs = (symbol) => /\/packages\/[\w-]+\/dist\//.test(symbol.declarations?.[0]?.getSourceFile().fileName);
  const homes = new Map();
  for (const { specifier, symbols } of points.map((point) => ({ ...point, symbols: named(point) })))
    for (const [name, symbol] of symbols) if (!homes.has(symbol)) homes.set(symbol, { specifier, name });

  return points.map((point) => {
    const imports = new Map();
    const add = (from, name) => imports.set(from, (imports.get(from) ?? new Set()).add(name));
    const hidden = new Map();
    /** The text of a symbol's declarations; what they name is imported or comes below. */
    const textOf = (symbol) =>
      statementsOf(symbol)
        .map((statement) => {
          for (const node of namesOfTypes(statement)) refer(checker.getSymbolAtLocation(leftmost(node)));
          return withoutProse(statement.getFullText());
        })
        .join("\n");
    const refer = (local) => {
      if (local === undefined || local.flags & ts.SymbolFlags.TypeParameter) return;
      const symbol = resolved(local);
      const { specifier, name } = homes.get(symbol) ?? {};
      if (specifier === point.specifier || hidden.has(symbol)) return;
      if (specifier !== undefined) add(specifier, as(name, local.name));
      else if (isOurs(symbol)) {
        hidden.set(symbol, "");
        hidden.set(symbol, textOf(symbol).replaceAll(/^export (?=declare|type|interface)/gm, ""));
      } else {
        const from = local.declarations?.find(ts.isImportSpecifier)?.parent.parent.parent.moduleSpecifier.text;
        if (from !== undefined) add(from, as(symbol.name, local.name));
      }
    };
    const own = named(point).map(([name, symbol]) => {
      const { specifier, name: homeName } = homes.get(symbol);
      if (specifier !== point.specifier) return `export { ${as(homeName, name)} } from "${specifier}";`;
      const text = textOf(symbol);
      return symbol.name === name ? text : `${text.replace(/^export /m, "")}\nexport { ${symbol.name} as ${name} };`;
    });
    const heads = [...imports].map(
      ([from, names]) => `import type { ${[...names].sort().join(", ")} } from "${from}";`,
    );
    return [point.specifier, [...heads.sort(), ...own, ...hidden.values(), "export {};"].join("\n\n")];
  });
}

const as = (name, alias) => (name === alias ? name : `${name} as ${alias}`);

const leftmost = (node) => (ts.isQualifiedName(node) ? leftmost(node.left) : node);

/** The statements that declare a symbol: a constant's, not only its name and type. */
const statementsOf = ({ declarations = [] }) =>
  declarations.map((node) => (ts.isVariableDeclaration(node) ? node.parent.parent : node));

const withoutProse = (text) =>
  text
    .replaceAll(/\/\*\*[^]*?\*\//g, (comment) => {
      const tags = comment.match(/@(?:default|deprecated|experimental)\b.*?(?=\s*(?:\*\/)?$)/gm) ?? [];
      return tags.length === 0 ? "" : `/** ${tags.join(" ")} */`;
    })
    .replaceAll(/^\/\/.*$/gm, "")
    .replaceAll(/^\s*\n/gm, "");
