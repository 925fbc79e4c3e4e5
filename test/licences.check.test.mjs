// What an install of sheaf-server brings beside our own packages, by the lockfile.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";

/** They permit use in a product of any license, on the condition at most that their text comes along. */
const permissive = [
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "(MIT OR CC0-1.0)",
  "Unlicense",
];
/** With the two of ours. It only goes down. */
const mostPackages = 161;

const { packages } = JSON.parse(readFileSync(`${root}/package-lock.json`, "utf8"));
const production = Object.entries(packages)
  .filter(([path, { dev, devOptional, link }]) => path.includes("node_modules/") && !dev && !devOptional && !link)
  .map(([path, { version, license }]) => ({ name: `${path.split("node_modules/").at(-1)}@${version}`, license }));

test("every production dependency has a permissive license", (t) => {
  for (const license of new Set(production.map((dependency) => dependency.license))) {
    const names = production.filter((dependency) => dependency.license === license).map(({ name }) => name);
    t.diagnostic(`${license}: ${names.join(", ")}`);
  }
  assert.deepEqual(
    production.filter(({ license }) => !permissive.includes(license)),
    [],
  );
});

test(`a production install brings at most ${mostPackages} packages`, () => {
  assert.ok(production.length + 2 <= mostPackages, `${production.length + 2} packages`);
  assert.ok(production.length > 50, "the lockfile was read");
});
