import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { coreSizes } from "../scripts/lib/size.mjs";

const recorded = JSON.parse(readFileSync(`${root}/test/fixtures/size.json`, "utf8"));
const actual = await coreSizes();

for (const [name, { bytes }] of Object.entries(recorded)) {
  test(`the ${name} does not grow (smaller? node scripts/record.mjs size)`, (context) => {
    const { bytes: now, targetBytes } = actual[name];
    context.diagnostic(`${name}: ${now} bytes min+gzip, recorded ${bytes}, target ${targetBytes}`);
    assert.ok(now <= bytes, `${name} is ${now} bytes min+gzip, more than the ceiling of ${bytes}`);
  });
}
