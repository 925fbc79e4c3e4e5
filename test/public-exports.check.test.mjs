import assert from "node:assert/strict";
import { test } from "node:test";
import { publicExports } from "../scripts/lib/public-exports.mjs";

// A CommonJS user's require() takes the same module; both must find every value.
for (const [specifier, names] of Object.entries(publicExports()))
  test(`${specifier} loads and has every value its declarations promise`, async () => {
    const values = Object.keys(await import(specifier)).sort();
    assert.deepEqual(
      values,
      names.filter((name) => !name.startsWith("type ")),
    );
  });
