import { posix } from "node:path";
import { floorComplaint } from "./floors.mjs";
import { importsOf } from "./imports.mjs";

// The areas of packages/sheaf/src that run only where Node's modules are; the others run in any JavaScript runtime.
const nodeAreas = new Set(["node", "metrics", "adapters"]);

// What an area of packages/sheaf-server/src must not import although it is on a lower floor.
const serverBans = {
  load: ["server", "http", "observe", "cache", "problems", "settings"],
  proxy: ["server", "runners"],
};

/** Complaints about every import of the modules `{ path, text }`, paths from the repository's root. */
export function complaintsAbout(sources, entries) {
  return sources
    .flatMap(({ path, text }) => importsOf(text).map((specifier) => complaintAbout(path, specifier, entries)))
    .filter(Boolean);
}

/**
 * What is wrong with the module at `path` (from the repository's root) naming `specifier`, or undefined.
 * `entries` are the entry points of sheaf: "sheaf", "sheaf/node" …
 */
export function complaintAbout(path, specifier, entries) {
  if (!path.startsWith("packages/")) return complaintAboutTool(path, specifier);
  const [, name, inside] = /^packages\/([^/]+)\/src\/(.+)$/.exec(path);
  const complaint = specifier.startsWith(".")
    ? complaintAboutFile(path, specifier)
    : name === "sheaf"
      ? complaintAboutModule(areaOf(inside), specifier)
      : complaintAboutPackage(specifier, entries);
  return complaint && `${path} imports ${specifier}: ${complaint}`;
}

/** About a module of the tools, tests and measurements: packages of npm and data files are not on any floor. */
function complaintAboutTool(path, specifier) {
  if (!/^\..*\.m?js$/.test(specifier)) return undefined;
  const complaint = floorComplaint(path, posix.join(posix.dirname(path), specifier));
  return complaint && `${path} imports ${specifier}: ${complaint}`;
}

function complaintAboutFile(path, specifier) {
  const target = posix.join(posix.dirname(path), specifier);
  const [, source, inside] = /^(packages\/[^/]+\/src)\/(.+)$/.exec(path);
  if (!target.startsWith(`${source}/`)) return "it leaves the package's src";
  const [area, targetArea] = [inside, target.slice(source.length + 1)].map(areaOf);
  if (source.includes("sheaf-server") && serverBans[area]?.includes(targetArea))
    return `${area} may not import ${targetArea}`;
  return floorComplaint(path, target);
}

function complaintAboutModule(area, specifier) {
  if (!specifier.startsWith("node:")) return "sheaf has no dependencies";
  return nodeAreas.has(area) ? undefined : `${area} runs in any runtime, not only in Node`;
}

function complaintAboutPackage(specifier, entries) {
  const isSheaf = specifier === "sheaf" || specifier.startsWith("sheaf/");
  if (!isSheaf) return undefined; // npm's packages: knip sees that they are declared.
  return entries.includes(specifier) ? undefined : "it is not a public entry point of sheaf";
}

/** The first folder below src; "index" for src/index.ts. */
const areaOf = (path) => path.split("/")[0].replace(/\.[jt]s$/, "");
