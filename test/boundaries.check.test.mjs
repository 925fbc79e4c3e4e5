// Every import against ARCHITECTURE.md: its floor plan, and what it says beyond it.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, posix, relative } from "node:path";
import { test } from "node:test";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { importsOf, readsEnvironment, runtimeImportsOf } from "../scripts/lib/imports.mjs";
import { codeBlocks } from "../scripts/lib/markdown.mjs";
import { entryPoints, isInternal } from "../scripts/lib/public-exports.mjs";

const moduleAt = (file) => ({ path: relative(root, file), text: readFileSync(file, "utf8") });
const sources = ["sheaf", "sheaf-server"].flatMap((name) => filesBelow(`packages/${name}/src`, ".ts")).map(moduleAt);
const tools = ["bench", "scripts", "test"]
  .flatMap((folder) => filesBelow(folder, ".mjs"))
  .filter((file) => !file.includes("/node_modules/"))
  .map(moduleAt);
const entries = entryPoints("sheaf").map(({ specifier }) => specifier);

const [tree, drawn] = codeBlocks(readFileSync(`${root}/ARCHITECTURE.md`, "utf8")).map(({ text }) => text.trim());
/** Area → its floors from the top, each a list of rooms; areas from the repository's root. */
const floorPlan = Object.fromEntries(
  drawn.split("\n").map((line) => {
    const [, area, floors] = /^(\S+) +(.+)$/.exec(line);
    const folder = area === "repository" ? "." : area.replace(/^([^/]+)/, "packages/$1/src");
    return [folder, floors.split(" → ").map((rooms) => rooms.split(", "))];
  }),
);

const isIn = (area, file) => area === "." || file.startsWith(`${area}/`);

/** The longest name of a room that holds the file; for a file of the area itself ".", or its name where each is a room. */
function roomOf(area, floors, file) {
  const path = area === "." ? file : file.slice(area.length + 1);
  const named = floors.flat().filter((room) => path.startsWith(`${room}/`));
  if (named.length > 0) return named.reduce((longest, room) => (room.length > longest.length ? room : longest));
  const [first, ...below] = path.split("/");
  return below.length === 0 && floors.flat().includes(".") ? "." : first.replace(/\.[jt]s$/, "");
}

/** Whether the file `from` stands, in each area that holds both, in the same room as the file `to` or on a higher floor. */
function isAbove(from, to) {
  return Object.entries(floorPlan)
    .filter(([area]) => isIn(area, from) && isIn(area, to))
    .every(([area, floors]) => {
      const [room, target] = [from, to].map((file) => roomOf(area, floors, file));
      const [floor, targetFloor] = [room, target].map((name) => {
        const own = floors.findIndex((rooms) => rooms.includes(name));
        return own === -1 ? floors.findIndex((rooms) => rooms.includes("*")) : own;
      });
      return room === target || (floor >= 0 && floor < targetFloor);
    });
}

// The areas of packages/sheaf/src that run only where Node's modules are; the others run in any JavaScript runtime.
const nodeAreas = ["node", "metrics", "adapters", "journal"];
const serverBans = {
  load: ["server", "http", "observe", "cache", "problems", "settings"],
  proxy: ["server", "runners"],
};

/** Whether the module at `path` may name `specifier`; tools may name anything. */
function isAllowed(path, specifier) {
  const [, src, name, area] = /^(packages\/([^/]+)\/src)\/([^/.]+)/.exec(path) ?? [];
  if (src === undefined) return true;
  if (specifier.startsWith(".")) {
    const target = posix.join(posix.dirname(path), specifier);
    const targetArea = target.slice(src.length + 1).split("/")[0].replace(/\.[jt]s$/, ""); // prettier-ignore
    return target.startsWith(`${src}/`) && !(name === "sheaf-server" && serverBans[area]?.includes(targetArea));
  }
  if (name === "sheaf") return specifier.startsWith("node:") && nodeAreas.includes(area);
  return !/^sheaf(?:\/|$)/.test(specifier) || entries.includes(specifier) || isInternal(specifier);
}

test("no module imports what its room may not (ARCHITECTURE.md: floor plan)", () => {
  assert.ok(tools.length > 100 && sources.length > 400, `${tools.length} tools, ${sources.length} sources were found`);
  const wrong = [...sources, ...tools].flatMap(({ path, text }) => {
    const targetOf = (specifier) => posix.join(posix.dirname(path), specifier);
    // In the core a room knows no other above it, by types either.
    const upwards = (isIn("packages/sheaf/src/core", path) ? importsOf(text) : runtimeImportsOf(text))
      .filter((specifier) => /^\..*\.m?[jt]s$/.test(specifier))
      .filter((specifier) => !isAbove(path, targetOf(specifier)));
    const banned = importsOf(text).filter((specifier) => !isAllowed(path, specifier));
    return [...upwards, ...banned].map((specifier) => `${path} imports ${specifier}`);
  });
  assert.deepEqual(wrong, []);
});

const foldersIn = (area) =>
  readdirSync(join(root, area), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
const foldersBelow = (area) =>
  foldersIn(area).flatMap((name) => [`${area}/${name}`, ...foldersBelow(`${area}/${name}`)]);

test("ARCHITECTURE.md names every room of both packages, in its tree and on one floor, and only rooms that exist", () => {
  const areas = ["packages/sheaf/src", "packages/sheaf-server/src"].flatMap((src) => [src, ...foldersBelow(src)]);
  for (const area of areas.filter((one) => foldersIn(one).length > 0)) {
    const rooms = floorPlan[area]?.flat() ?? [];
    if (!rooms.includes("*")) assert.deepEqual(foldersIn(area).filter((folder) => !rooms.includes(folder)), [], area); // prettier-ignore
  }
  for (const [area, floors] of Object.entries(floorPlan)) {
    assert.equal(new Set(floors.flat()).size, floors.flat().length, `${area}: a room stands on two floors`);
    assert.deepEqual(floors.flat().filter((room) => room !== "*" && !existsSync(join(root, area, room))), [], area); // prettier-ignore
  }
  // Adapters are named by their clients.
  const inTree = areas.filter((area) => !/\/adapters\/(?!nats\b)/.test(area));
  assert.deepEqual(inTree.filter((area) => !tree.includes(`${basename(area)}/`)), []); // prettier-ignore
});

test("process.env is read in one file of the server, set in another, and handed on in one of the library", () => {
  const users = sources.filter(({ path, text }) => readsEnvironment(text, path));
  assert.deepEqual(
    users.map(({ path }) => path),
    [
      "packages/sheaf/src/node/command/child.ts",
      "packages/sheaf-server/src/settings/config.ts",
      "packages/sheaf-server/src/shared/without-telemetry.ts",
    ],
  );
});

test("only one file imports ONNX Runtime, and it turns telemetry off first", () => {
  const importers = sources.filter(({ text }) => importsOf(text).includes("onnxruntime-node"));
  assert.deepEqual(
    importers.map(({ path }) => path),
    ["packages/sheaf-server/src/runners/onnx/runtime.ts"],
  );
  for (const path of ["index.ts", "cli/main.ts", "runners/onnx/runtime.ts", "runners/workers/worker-module.ts"]) {
    const { text } = sources.find((source) => source.path === `packages/sheaf-server/src/${path}`);
    assert.match(importsOf(text)[0], /shared\/without-telemetry\.ts$/, path);
  }
});
