import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { tableRows } from "../scripts/lib/markdown.mjs";
import { coreRooms, coreSizes } from "../scripts/lib/size.mjs";

const read = (path) => readFileSync(`${root}/${path}`, "utf8");
const recorded = JSON.parse(read("test/fixtures/size.json"));
const stated = read("docs/stability.md");
/** Smaller differences need no new record. */
const isNear = (now, then) => Math.abs(now - then) <= Math.max(300, 0.02 * then);

for (const [name, { bytes: now }] of Object.entries(await coreSizes()))
  test(`the size of the ${name} is the recorded one within 2 % (node scripts/record.mjs size)`, () => {
    const { bytes } = recorded[name];
    assert.ok(isNear(now, bytes), `${now} bytes min+gzip, recorded ${bytes}: say in the commit what it is spent on`);
    assert.ok(stated.includes(`${(bytes / 1000).toFixed(1)} kB`), "docs/stability.md states the recorded size");
  });

test("docs/stability.md states the bytes of every room in the bundle (node scripts/record.mjs size)", async () => {
  const rows = new Map(tableRows(stated, "room").map(([room, size]) => [room, 1000 * Number.parseFloat(size)]));
  const rooms = await coreRooms();
  assert.deepEqual([...rows.keys()].sort(), rooms.map(({ room }) => room).sort());
  const wrong = rooms.filter(({ room, bytes }) => !isNear(bytes, rows.get(room)));
  assert.deepEqual(wrong, []);
});
