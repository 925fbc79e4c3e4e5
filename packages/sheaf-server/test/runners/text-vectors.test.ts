// Folders as sentence-transformers 6, transformers 5 and torch 2.15 write them, with small random weights, and what those
// libraries compute of some forty texts.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { readFolder } from "../../dist/runners/text/folder-settings.js";
import { loadTextModel, runTexts, type TextItem } from "../../dist/runners/text/model.js";

interface Expected {
  readonly modelFile?: string;
  readonly texts: readonly TextItem[];
  readonly vectors: readonly (readonly number[])[];
}

const base = fileURLToPath(new URL("../../test/fixtures/text-folders", import.meta.url));
const folders = readdirSync(base);

test("there are ten folders", () => assert.equal(folders.length, 10));

for (const name of folders)
  test(`${name}: the numbers are those of the library that made it`, async () => {
    const folder = join(base, name);
    const { modelFile, texts, vectors } = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8")) as Expected;
    const settings = readFolder(folder, { modelFile });
    const model = await loadTextModel({ folder, settings });
    try {
      const [most, least] = name.includes("fp16") ? [1e-2, 0.999] : [1e-4, 0.9999];
      const results = await runTexts(texts, model);
      results.forEach((result, i) => {
        assert.ok(!(result instanceof Error), `${JSON.stringify(texts[i])}: ${String(result)}`);
        const numbers = result.vector ?? result.scores ?? [result.score!];
        const expected = vectors[i]!;
        assert.equal(numbers.length, expected.length);
        const difference = Math.max(...expected.map((value, j) => Math.abs(value - numbers[j]!)));
        assert.ok(difference <= most, `${JSON.stringify(texts[i])} differs by ${difference}`);
        const product = (a: ArrayLike<number>): number => expected.reduce((sum, value, j) => sum + value * a[j]!, 0);
        const cosine = product(numbers) / Math.sqrt(product(expected) * Array.from(numbers).reduce((sum, x) => sum + x * x, 0)); // prettier-ignore
        assert.ok(cosine >= least, `${JSON.stringify(texts[i])} has the cosine ${cosine}`);
      });
    } finally {
      await model.session.release();
    }
  });
