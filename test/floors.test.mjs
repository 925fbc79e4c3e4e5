// The floor plan (scripts/lib/floors.mjs) against the folders; boundaries.test.mjs checks every import against it.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { filesBelow, root } from "../scripts/lib/files.mjs";
import { circlesOf, drawnPlan, floorComplaint, floorPlan, roomImports } from "../scripts/lib/floors.mjs";
import { codeBlocks } from "../scripts/lib/markdown.mjs";

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

test("a circle of rooms is found", () => {
  const area = "packages/sheaf/src";
  const wrong = {
    path: `${area}/policies/greedy.ts`,
    text: 'import { createBatcher } from "../core/create-batcher.ts";',
  };
  assert.deepEqual(circlesOf(roomImports(area, [...sources, wrong])), [["core", "policies"]]);
});

test("a room imports from lower floors only, not from its own floor nor from above", () => {
  const plan = { area: [["."], ["top", "beside"], ["*"], ["ground"]] };
  const allowed = (from, to) => floorComplaint(`area/${from}`, `area/${to}`, plan) === undefined;
  assert.ok(allowed("index.ts", "top/a.ts"));
  assert.ok(allowed("top/a.ts", "top/b/c.ts"));
  assert.ok(allowed("top/a.ts", "ground/a.ts"));
  assert.ok(allowed("other/a.ts", "ground/a.ts"));
  assert.ok(!allowed("top/a.ts", "beside/a.ts"));
  assert.ok(!allowed("ground/a.ts", "other/a.ts"));
  assert.ok(!allowed("other/a.ts", "another/a.ts"));
  assert.ok(!allowed("top/a.ts", "index.ts"));
});

test("ARCHITECTURE.md shows the floor plan", () => {
  const blocks = codeBlocks(readFileSync(`${root}/ARCHITECTURE.md`, "utf8")).map(({ text }) => text.trim());
  assert.ok(blocks.includes(drawnPlan()), "run node scripts/record.mjs floors");
});

function foldersIn(area) {
  const entries = readdirSync(join(root, area), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

function foldersBelow(area) {
  return foldersIn(area).flatMap((name) => [`${area}/${name}`, ...foldersBelow(`${area}/${name}`)]);
}
