import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { coreSizes } from "../scripts/lib/size.mjs";

const recorded = JSON.parse(readFileSync(`${root}/test/fixtures/size.json`, "utf8"));
const actual = await coreSizes();

for (const [name, { bytes }] of Object.entries(recorded)) {
  test(`the ${name} grows by no more than 5 % unseen (worth it? node scripts/record.mjs size)`, (context) => {
    const { bytes: now, targetBytes } = actual[name];
    context.diagnostic(`${name}: ${now} bytes min+gzip, recorded ${bytes}, target ${targetBytes}`);
    assert.ok(now <= bytes * 1.05, `${name} is ${now} bytes min+gzip, recorded are ${bytes}`);
  });
}
