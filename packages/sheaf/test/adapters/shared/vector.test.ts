// A vector that is none fails the caller whose text it was for, whichever adapter it came through.
import assert from "node:assert/strict";
import { test } from "node:test";
import { coalesce } from "../../../dist/adapters/ai-sdk.js";
import { CoalescedEmbeddings } from "../../../dist/adapters/langchain.js";
import { openaiEmbeddings } from "../../../dist/adapters/openai/index.js";
import { endsOf } from "../../support/rig.js";

const base64 = (...bytes: number[]): string => Buffer.from(bytes).toString("base64");
const notANumber = Buffer.from(Float32Array.of(1, Number.NaN).buffer).toString("base64");

/** Of each: what stands where a vector should, and what its caller is told. */
const badVectors: readonly [string, unknown, RegExp][] = [
  ["a null among the numbers", [1, null], /finite numbers, got null at 1/],
  ["NaN", [Number.NaN], /finite numbers, got NaN at 0/],
  ["a text among the numbers", [1, 2, "3"], /finite numbers, got "3" at 2/],
  ["no number at all", [], /must be numbers, got an empty one/],
  ["null", null, /must be numbers, got null/],
  ["an object", { 0: 1 }, /must be numbers, got an object/],
];
const badTexts: readonly [string, unknown, RegExp][] = [
  ["base64 of three bytes", base64(1, 2, 3), /float32 in base64, got a text of 4/],
  ["a text that is not base64", "ab*!", /float32 in base64/],
  ["base64 of NaN", notANumber, /finite numbers, got NaN at 1/],
  ["an empty text", "", /must be numbers, got an empty one/],
];

/** The outcomes of three texts, of which the second has the bad vector. */
type Ask = (bad: unknown) => Promise<PromiseSettledResult<unknown>[]>;
const vectors = (bad: unknown): number[][] => [[1], bad as number[], [3]];
const adapters: Record<string, { ask: Ask; cases: typeof badVectors }> = {
  openai: {
    cases: [...badVectors, ...badTexts],
    ask: (bad) => {
      const data = vectors(bad).map((embedding, index) => ({ index, embedding }));
      const embed = openaiEmbeddings({ embeddings: { create: async () => ({ data }) } }, { model: "m" });
      return embed.settle(["a", "b", "c"]);
    },
  },
  "ai-sdk": {
    cases: badVectors,
    ask: (bad) => {
      const model = {
        modelId: "m",
        maxEmbeddingsPerCall: 3,
        doEmbed: async () => ({ embeddings: vectors(bad), warnings: [] }),
      };
      const { wrapEmbed } = coalesce();
      return Promise.allSettled(
        ["a", "b", "c"].map(async (text) => (await wrapEmbed({ params: { values: [text] }, model })).embeddings[0]),
      );
    },
  },
  langchain: {
    cases: badVectors,
    ask: (bad) => {
      const inner = { embedDocuments: async () => vectors(bad), embedQuery: async () => [] };
      const embeddings = new CoalescedEmbeddings(inner);
      return Promise.allSettled(["a", "b", "c"].map((text) => embeddings.embedQuery(text)));
    },
  },
};

for (const [adapter, { ask, cases }] of Object.entries(adapters)) {
  for (const [name, bad, complaint] of cases) {
    test(`${adapter}: ${name} in the place of a vector fails its caller, the others have theirs`, async () => {
      const [first, second, third] = endsOf(await ask(bad));
      assert.deepEqual([first, third], [[1], [3]]);
      assert.match(String(second), complaint);
      assert.ok(second instanceof TypeError);
    });
  }
}

test("an entry of a reply that is null is a vector that is missing, not a riddle", async () => {
  const embed = openaiEmbeddings({ embeddings: { create: async () => ({ data: [null] }) } }, { model: "m" });
  await assert.rejects(embed("a"), /must be numbers, got null/);
});

test("a model that gives no embeddings array: a TypeError that says what it gave", async () => {
  const model = { modelId: "m", maxEmbeddingsPerCall: 1, doEmbed: async () => undefined };
  const asked = coalesce().wrapEmbed({ params: { values: ["a"] }, model });
  await assert.rejects(asked, /doEmbed must give embeddings, got undefined/);
});
