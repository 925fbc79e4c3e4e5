import { readFileSync } from "node:fs";
import { root } from "./files.mjs";
import { withoutComments } from "./imports.mjs";

/** The public entry points of a package as its package.json declares them: specifier and declaration file. */
export function entryPoints(name) {
  const { exports } = JSON.parse(readFileSync(`${root}/packages/${name}/package.json`, "utf8"));
  return Object.entries(exports)
    .filter(([, target]) => typeof target === "object")
    .map(([subpath, { types }]) => ({
      specifier: name + subpath.slice(1),
      types: `${root}/packages/${name}/${types}`,
    }));
}

/** Names that a declaration file exports, sorted; types are marked so. `export *` is refused: a public list is explicit. */
export function exportedNames(declarations) {
  const text = withoutComments(declarations);
  if (/\bexport\s*\*/.test(text)) throw new Error("A public entry point names what it exports; `export *` does not.");
  const names = [];
  for (const [, typeOnly, list] of text.matchAll(/\bexport\s+(type\s+)?\{([^}]*)\}/g))
    for (const item of list
      .split(",")
      .map((part) => part.trim())
      .filter(Boolean)) {
      const name = item
        .replace(/^type\s+/, "")
        .split(/\s+as\s+/)
        .at(-1);
      names.push(typeOnly || item.startsWith("type ") ? `type ${name}` : name);
    }
  const declared =
    /\bexport\s+(?:declare\s+)?(?:abstract\s+)?(const|let|function\*?|async function|class|interface|type)\s+([\w$]+)/g;
  for (const [, kind, name] of text.matchAll(declared))
    names.push(kind === "interface" || kind === "type" ? `type ${name}` : name);
  return [...new Set(names)].sort();
}

/** Every public name of both packages by entry point. Needs a build. */
export function publicExports() {
  const points = ["sheaf", "sheaf-server"].flatMap(entryPoints);
  return Object.fromEntries(
    points.map(({ specifier, types }) => [specifier, exportedNames(readFileSync(types, "utf8"))]),
  );
}
