import { posix } from "node:path";
import { floorComplaint } from "./floors.mjs";
import { importsOf, runtimeImportsOf } from "./imports.mjs";
import { isInternal } from "./public-exports.mjs";

// The areas of packages/sheaf/src that run only where Node's modules are; the others run in any JavaScript runtime.
const nodeAreas = new Set(["node", "metrics", "adapters"]);

// What an area of packages/sheaf-server/src must not import although it is on a lower floor.
const serverBans = {
  load: ["server", "http", "observe", "cache", "problems", "settings"],
  proxy: ["server", "runners"],
};

/**
 * Complaints about every import of the modules `{ path, text }`, paths from the repository's root. The floor plan holds for
 * what is imported at run time: types make no order. `entries` are the entry points of sheaf: "sheaf", "sheaf/node" …
 */
export function complaintsAbout(sources, entries) {
  return sources
    .flatMap(({ path, text }) => [
      ...importsOf(text).map((specifier) => complained(path, specifier, complaintAbout(path, specifier, entries))),
      ...runtimeImportsOf(text)
        .filter((specifier) => specifier.startsWith(".") && /\.m?[jt]s$/.test(specifier))
        .map((specifier) => complained(path, specifier, floorComplaint(path, targetOf(path, specifier)))),
    ])
    .filter(Boolean);
}

const complained = (path, specifier, complaint) => complaint && `${path} imports ${specifier}: ${complaint}`;
const targetOf = (path, specifier) => posix.join(posix.dirname(path), specifier);

/** What is wrong with the module at `path` naming `specifier`, or undefined; tools may name anything. */
function complaintAbout(path, specifier, entries) {
  if (!path.startsWith("packages/")) return undefined;
  const [, name, inside] = /^packages\/([^/]+)\/src\/(.+)$/.exec(path);
  if (specifier.startsWith(".")) return complaintAboutFile(path, specifier);
  return name === "sheaf" ? complaintAboutModule(areaOf(inside), specifier) : complaintAboutPackage(specifier, entries);
}

function complaintAboutFile(path, specifier) {
  const target = targetOf(path, specifier);
  const [, source, inside] = /^(packages\/[^/]+\/src)\/(.+)$/.exec(path);
  if (!target.startsWith(`${source}/`)) return "it leaves the package's src";
  const [area, targetArea] = [inside, target.slice(source.length + 1)].map(areaOf);
  const isBanned = source.includes("sheaf-server") && serverBans[area]?.includes(targetArea);
  return isBanned ? `${area} may not import ${targetArea}` : undefined;
}

function complaintAboutModule(area, specifier) {
  if (!specifier.startsWith("node:")) return "sheaf has no dependencies";
  return nodeAreas.has(area) ? undefined : `${area} runs in any runtime, not only in Node`;
}

function complaintAboutPackage(specifier, entries) {
  const isSheaf = specifier === "sheaf" || specifier.startsWith("sheaf/");
  if (!isSheaf) return undefined; // npm's packages: knip sees that they are declared.
  return entries.includes(specifier) || isInternal(specifier) ? undefined : "it is not a public entry point of sheaf";
}

/** The first folder below src; "index" for src/index.ts. */
const areaOf = (path) => path.split("/")[0].replace(/\.[jt]s$/, "");
