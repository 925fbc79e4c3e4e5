// The floor plan (scripts/lib/floors.mjs) against the folders; boundaries.check.test.mjs checks every import against it.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { test } from "node:test";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { circlesOf, drawnPlan, floorPlan, roomImports } from "../scripts/lib/floors.mjs";
import { codeBlocks, inlineCode } from "../scripts/lib/markdown.mjs";

const areas = ["packages/sheaf/src", "packages/sheaf-server/src"].flatMap((src) => [src, ...foldersBelow(src)]);
const sources = ["sheaf", "sheaf-server"]
  .flatMap((name) => filesBelow(`packages/${name}/src`, ".ts"))
  .map((file) => ({ path: relative(root, file), text: readFileSync(file, "utf8") }));

test("every folder with rooms has a floor plan", () => {
  const missing = areas.filter((area) => foldersIn(area).length > 0 && !(area in floorPlan));
  assert.deepEqual(missing, [], "add its rooms to scripts/lib/floors.mjs");
});

test("a floor plan names each room of its area once, and only rooms that exist", () => {
  for (const [area, floors] of Object.entries(floorPlan)) {
    const rooms = floors.flat();
    assert.deepEqual([...new Set(rooms)], rooms, area);
    const gone = rooms.filter((room) => room !== "*" && !existsSync(join(root, area, room)));
    assert.deepEqual(gone, [], area);
    if (area === "." || rooms.includes("*")) continue;
    const unnamed = foldersIn(area).filter((folder) => !rooms.includes(folder));
    assert.deepEqual(unnamed, [], `${area}: on which floor?`);
  }
});

test("no circle of rooms in any area that has a plan", () => {
  const packages = Object.keys(floorPlan).filter((area) => area !== ".");
  for (const area of packages) assert.deepEqual(circlesOf(roomImports(area, sources)), [], area);
});

test("ARCHITECTURE.md shows the floor plan", () => {
  const blocks = codeBlocks(readFileSync(`${root}/ARCHITECTURE.md`, "utf8")).map(({ text }) => text.trim());
  assert.ok(blocks.includes(drawnPlan()), "run node scripts/record.mjs floors");
});

test("the tree in ARCHITECTURE.md names every room of both packages", () => {
  const [tree] = codeBlocks(readFileSync(`${root}/ARCHITECTURE.md`, "utf8")).map(({ text }) => text);
  // Adapters are named by their clients.
  const rooms = areas.filter((area) => !/\/adapters\/(?!nats\b)/.test(area));
  assert.ok(rooms.length > 40, `only ${rooms.length} rooms were found`);
  assert.deepEqual(
    rooms.filter((area) => !tree.includes(`${basename(area)}/`)),
    [],
  );
});

test("the folders and files that a room's README.md points to exist", () => {
  const dead = filesBelow("packages", "README.md").flatMap((file) =>
    inlineCode(readFileSync(file, "utf8"))
      .filter((text) => /^\.\.?\/|\/$|\.ts$/.test(text) && !existsSync(join(dirname(file), text)))
      .map((text) => `${relative(root, file)}: ${text}`),
  );
  assert.deepEqual(dead, []);
});

function foldersIn(area) {
  const entries = readdirSync(join(root, area), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

function foldersBelow(area) {
  return foldersIn(area).flatMap((name) => [`${area}/${name}`, ...foldersBelow(`${area}/${name}`)]);
}
