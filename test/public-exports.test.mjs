import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { root } from "../scripts/lib/files.mjs";
import { declaredExports, exportedNames, publicExports } from "../scripts/lib/public-exports.mjs";

const recorded = JSON.parse(readFileSync(`${root}/test/fixtures/public-exports.json`, "utf8"));
const declared = declaredExports();

// An entry point that is a list is its own record: what it exports changes only with a line of it.
for (const specifier of new Set([...Object.keys(recorded), ...Object.keys(declared)]))
  test(`${specifier} exports exactly the recorded names (meant otherwise? node scripts/record.mjs exports)`, () => {
    assert.deepEqual(declared[specifier], recorded[specifier]);
  });

// A CommonJS user's require() takes the same module; both must find every value.
for (const [specifier, names] of Object.entries(publicExports()))
  test(`${specifier} loads and has every value its declarations promise`, async () => {
    const values = Object.keys(await import(specifier)).sort();
    assert.deepEqual(
      values,
      names.filter((name) => !name.startsWith("type ")),
    );
  });

test("exportedNames reads every form of export and refuses export *", () => {
  const declarations = `
    export { a, type B, c as d } from "./x.js";
    export type { E, F as G } from "./y.js";
    export declare const h: number;
    export interface I {} // export { no } in a comment
    export declare function j(): Iterable<number>;
    export {};
  `;
  assert.deepEqual(exportedNames(declarations), ["a", "d", "h", "j", "type B", "type E", "type G", "type I"]);
  assert.throws(() => exportedNames(`export * from "./z.js";`), /explicit|names what it exports/);
});
