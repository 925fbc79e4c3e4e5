import { posix } from "node:path";
import { runtimeImportsOf } from "./imports.mjs";

/**
 * The floor plan: the rooms of each area, floor by floor from the top. At run time a file imports only from its own room
 * and from rooms on lower floors of its area; `import type` may go anywhere. A room is a folder with all that is below it; "." stands for the files of the area itself,
 * and "*" for every file and folder that is not named, each a room of its own.
 */
export const floorPlan = {
  ".": [
    ["test", "test/integration"],
    ["scripts/prove"],
    ["bench"],
    ["test/integration/lib"],
    ["test/fakes", "test/support"],
    ["scripts/site"],
    ["scripts"],
    ["examples", "packages"],
  ],
  "packages/sheaf/src": [
    ["internal"],
    ["adapters", "metrics", "models", "node", "tuning"],
    [".", "testing"],
    ["limits"],
    ["core"],
    ["policies"],
    ["shared"],
  ],
  "packages/sheaf/src/core": [["."], ["calls"], ["dispatch"], ["queue"], ["measure"], ["contract"], ["runtime"]],
  "packages/sheaf/src/adapters": [["*"], ["shared"]],
  "packages/sheaf/src/adapters/nats": [["."], ["front-end", "worker"], ["queue"], ["wire"]],
  "packages/sheaf/src/adapters/nats/worker": [["."], ["others"]],
  "packages/sheaf/src/adapters/shared": [["postgres"], ["."], ["tokens"]],
  "packages/sheaf/src/node": [["."], ["pool"], ["command", "worker"], ["wire"], ["contract"]],
  "packages/sheaf/src/policies": [["auto"], ["."]],
  "packages/sheaf/src/tuning": [["."], ["scaling"], ["traffic"]],
  "packages/sheaf-server/src": [
    [".", "cli"],
    ["load", "proxy"],
    ["server"],
    ["http"],
    ["observe"],
    ["tenants"],
    ["cache", "problems", "settings"],
    ["dashboard", "runners"],
    ["shared"],
  ],
  "packages/sheaf-server/src/cli": [["."], ["shared"]],
  "packages/sheaf-server/src/dashboard": [[".", "page"]],
  "packages/sheaf-server/src/http": [["lifecycle"], ["."], ["bodies", "schema"]],
  "packages/sheaf-server/src/load": [["demo"], ["tune"], ["bench"], ["report"], ["http", "simulate"], ["."]],
  "packages/sheaf-server/src/runners": [
    ["."],
    ["devices", "python", "use-lite"],
    ["text"],
    ["onnx"],
    ["self-test"],
    ["tensors", "workers"],
    ["contract"],
  ],
  "packages/sheaf-server/src/server": [["."], ["protocols"], ["fleet", "observe"], ["models"], ["codec"], ["contract"]],
  "packages/sheaf-server/src/server/models": [["repository"], ["."]],
  "packages/sheaf-server/src/server/protocols": [["grpc"], ["kserve", "tei"], ["."]],
};

/** Why the file `from` may not import the file `to`, both from the repository's root, or undefined if it may. */
export function floorComplaint(from, to, plan = floorPlan) {
  for (const [area, floors] of Object.entries(plan)) {
    if (!isIn(area, from) || !isIn(area, to)) continue;
    const [room, target] = [from, to].map((file) => roomOf(area, floors, file));
    if (room === target) continue;
    const [floor, targetFloor] = [room, target].map((name) => floorOf(floors, name));
    if (floor === -1 || targetFloor === -1)
      return `${floor === -1 ? room : target} stands on no floor of ${area}; see scripts/lib/floors.mjs`;
    if (floor >= targetFloor) return `room ${room} is not above room ${target} in ${area}`;
  }
  return undefined;
}

/** Which rooms of an area each of its rooms imports at run time, as the modules `{ path, text }` do it. */
export function roomImports(area, sources, plan = floorPlan) {
  const imports = new Map();
  for (const { path, text } of sources.filter((source) => isIn(area, source.path)))
    for (const specifier of runtimeImportsOf(text).filter((name) => name.startsWith("."))) {
      const target = posix.join(posix.dirname(path), specifier);
      if (!isIn(area, target)) continue;
      const [from, to] = [path, target].map((file) => roomOf(area, plan[area], file));
      if (from !== to) imports.set(from, (imports.get(from) ?? new Set()).add(to));
    }
  return imports;
}

/** The rooms that reach each other both ways, sorted, one list for each circle. */
export function circlesOf(imports) {
  const reached = new Map([...imports.keys()].map((room) => [room, reachedFrom(room, imports)]));
  const circles = [...reached.keys()].map((room) =>
    [...reached.get(room)].filter((other) => reached.get(other)?.has(room)).sort(),
  );
  return [...new Map(circles.map((circle) => [circle.join(), circle])).values()].filter(({ length }) => length > 0);
}

function reachedFrom(room, imports, seen = new Set()) {
  for (const next of imports.get(room) ?? []) {
    if (seen.has(next)) continue;
    seen.add(next);
    reachedFrom(next, imports, seen);
  }
  return seen;
}

/** The plan as ARCHITECTURE.md shows it: an area in a line, its floors from the top. */
export function drawnPlan(plan = floorPlan) {
  const areas = Object.keys(plan).map(shortName);
  const width = Math.max(...areas.map((area) => area.length));
  const lines = Object.values(plan).map(
    (floors, index) => `${areas[index].padEnd(width)}  ${floors.map((rooms) => rooms.join(", ")).join(" → ")}`,
  );
  return lines.join("\n");
}

/** `packages/sheaf/src/core` as `sheaf/core`. */
const shortName = (area) => (area === "." ? "repository" : area.replace(/^packages\/([^/]+)\/src/, "$1"));

const isIn = (area, file) => area === "." || file.startsWith(`${area}/`);

/** The longest name of a room that holds the file; for a file of the area itself ".", or its name where each is a room. */
function roomOf(area, floors, file) {
  const path = area === "." ? file : file.slice(area.length + 1);
  const named = floors.flat().filter((room) => path.startsWith(`${room}/`));
  if (named.length > 0) return named.reduce((longest, room) => (room.length > longest.length ? room : longest));
  const [first, ...below] = path.split("/");
  return below.length === 0 && floors.flat().includes(".") ? "." : first.replace(/\.[jt]s$/, "");
}

function floorOf(floors, room) {
  const own = floors.findIndex((rooms) => rooms.includes(room));
  return own === -1 ? floors.findIndex((rooms) => rooms.includes("*")) : own;
}
