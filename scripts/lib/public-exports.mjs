import { readFileSync } from "node:fs";
import { Visitor } from "oxc-parser";
import { libraryEntries } from "./bundle.mjs";
import { root } from "./files.mjs";
import { parsed } from "./imports.mjs";

/** Whether it is one of sheaf's entry points for sheaf-server and our own tools. */
export const isInternal = (specifier) => /^sheaf\/internal(?:\/[a-z]+)?$/.test(specifier);

/** The public entry points of a package: specifier and declaration file as compiled, before the library is bundled. */
export function entryPoints(name) {
  if (name === "sheaf")
    return libraryEntries()
      .map(({ name, module }) => ({
        specifier: name === "index" ? "sheaf" : `sheaf/${name}`,
        types: `${root}/packages/sheaf/dist/${module}.d.ts`,
      }))
      .filter(({ specifier }) => !isInternal(specifier));
  const { exports } = JSON.parse(readFileSync(`${root}/packages/${name}/package.json`, "utf8"));
  return Object.entries(exports)
    .filter(([, target]) => typeof target === "object")
    .map(([subpath, { types }]) => ({
      specifier: name + subpath.slice(1),
      types: `${root}/packages/${name}/${types}`,
    }));
}

/** Names that a module exports, sorted; types are marked so. `export *` is refused: a public list is explicit. */
export function exportedNames(source, file = "index.d.ts") {
  const names = [];
  const add = (name, isType) => void names.push(isType ? `type ${name}` : name);
  new Visitor({
    ExportAllDeclaration() {
      throw new Error("A public entry point names what it exports; `export *` does not.");
    },
    ExportNamedDeclaration({ declaration, specifiers, exportKind }) {
      for (const { exported, exportKind: own } of specifiers)
        add(exported.name, exportKind === "type" || own === "type");
      if (declaration === null) return;
      const declared = declaration.declarations ?? [declaration];
      for (const { id } of declared) add(id.name, /^TS(?:Interface|TypeAlias)Declaration$/.test(declaration.type));
    },
  }).visit(parsed(source, file).program);
  return [...new Set(names)].sort();
}

/** Every public name of both packages by entry point. Needs a build. */
export const publicExports = () =>
  Object.fromEntries(
    ["sheaf", "sheaf-server"]
      .flatMap(entryPoints)
      .map(({ specifier, types }) => [specifier, exportedNames(readFileSync(types, "utf8"))]),
  );
