import assert from "node:assert/strict";
import { test } from "node:test";
import { entryPoints, publicExports } from "../scripts/lib/public-exports.mjs";
import { publicOptions } from "../scripts/lib/public-signatures.mjs";

// A CommonJS user's require() takes the same module; both must find every value.
for (const [specifier, names] of Object.entries(publicExports()))
  test(`${specifier} loads and has every value its declarations promise`, async () => {
    const values = Object.keys(await import(specifier)).sort();
    assert.deepEqual(
      values,
      names.filter((name) => !name.startsWith("type ")),
    );
  });

test("every option in a public signature is required, or shows its default in the editor", () => {
  const options = publicOptions([...entryPoints("sheaf"), ...entryPoints("sheaf-server")]);
  assert.ok(options.length > 700);
  // A setting's default stands in its row alone, from which help and the reference have it.
  const isSetting = (name) => name.startsWith("sheaf-server ") && /\.settings\.\w+$/.test(name);
  assert.deepEqual(
    options.filter(({ name, tag }) => !isSetting(name) && (tag ?? "") === "").map(({ name }) => name),
    [],
  );
  const tagOf = (wanted) => options.find(({ name }) => name === wanted)?.tag;
  assert.equal(tagOf("sheaf createBatcher.maxBatchSize"), "32");
  assert.equal(tagOf("sheaf createBatcher.rateLimit.runs"), "no limit", "of an object in the options");
  assert.equal(tagOf("sheaf/adapters/openai openaiEmbeddings.maxBatchSize"), "100", "its own, not the batcher's");
});
