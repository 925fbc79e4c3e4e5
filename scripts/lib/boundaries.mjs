import { posix } from "node:path";

// Who may import whom inside packages/sheaf/src; every area may import itself.
const sheafAreas = {
  shared: [],
  policies: ["shared"],
  core: ["policies", "shared"],
  index: ["core", "policies"],
  node: ["index", "core", "policies", "shared"],
  tuning: ["index", "core", "policies", "shared"],
  metrics: ["index", "core", "policies", "shared"],
  adapters: ["index", "core", "policies", "shared"],
};
// The areas that run only where Node's modules are; the others run in any JavaScript runtime.
const nodeAreas = new Set(["node", "metrics", "adapters"]);

// What an area of packages/sheaf-server/src must not import; cli may import all.
const serverBans = {
  server: ["load", "proxy", "cli"],
  proxy: ["runners", "load", "cli"],
  runners: ["server", "load", "cli"],
  load: ["server", "cli"],
  dashboard: ["load", "cli"],
};

/**
 * What is wrong with the module at `path` (from the repository's root) naming `specifier`, or undefined.
 * `entries` are the public entry points of sheaf: "sheaf", "sheaf/node" …
 */
export function complaintAbout(path, specifier, entries) {
  const [, name, inside] = /^packages\/([^/]+)\/src\/(.+)$/.exec(path);
  const complaint =
    name === "sheaf" ? complaintInSheaf(inside, specifier) : complaintInServer(inside, specifier, entries);
  return complaint && `${path} imports ${specifier}: ${complaint}`;
}

function complaintInSheaf(path, specifier) {
  const area = areaOf(path);
  const allowed = sheafAreas[area];
  if (allowed === undefined) return `the area ${area} stands in no rule; see scripts/lib/boundaries.mjs`;
  if (specifier.startsWith("node:"))
    return nodeAreas.has(area) ? undefined : `${area} runs in any runtime, not only in Node`;
  if (!specifier.startsWith(".")) return "sheaf has no dependencies";
  const target = posix.join(posix.dirname(path), specifier);
  if (target.startsWith("..")) return "it leaves the package's src";
  const targetArea = areaOf(target);
  if (area === "adapters" && targetArea === "adapters") return complaintBetweenAdapters(path, target);
  return area === targetArea || allowed.includes(targetArea) ? undefined : `${area} may not import ${targetArea}`;
}

function complaintBetweenAdapters(path, target) {
  const [from, to] = [path, target].map((file) => file.split("/")[1].replace(/\.[jt]s$/, ""));
  return from === to || to === "shared" ? undefined : "adapters do not import each other, only adapters/shared";
}

function complaintInServer(path, specifier, entries) {
  const isSheaf = specifier === "sheaf" || specifier.startsWith("sheaf/");
  if (isSheaf) return entries.includes(specifier) ? undefined : "it is not a public entry point of sheaf";
  if (!specifier.startsWith(".")) return undefined; // npm's packages: knip sees that they are declared.
  const target = posix.join(posix.dirname(path), specifier);
  if (target.startsWith("..")) return "it leaves the package's src";
  const banned = serverBans[areaOf(path)]?.includes(areaOf(target));
  return banned ? `${areaOf(path)} may not import ${areaOf(target)}` : undefined;
}

/** The first folder below src; "index" for src/index.ts. */
const areaOf = (path) => path.split("/")[0].replace(/\.[jt]s$/, "");
