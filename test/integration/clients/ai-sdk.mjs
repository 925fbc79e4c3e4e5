// `ai-sdk.mjs`, with AI_SDK=7 for that version.
import { readFileSync } from "node:fs";
import process from "node:process";
import { answer, given, messageOf } from "./client.mjs";

const suffix = process.env.AI_SDK ?? "";
const { embed, embedMany } = await import(`ai${suffix}`);
const { createOpenAICompatible } = await import(`@ai-sdk/openai-compatible${suffix}`);
const { version } = JSON.parse(readFileSync(new URL(`../node_modules/ai${suffix}/package.json`, import.meta.url)));
const { model, texts, many } = given;

await answer(version, async (baseURL) => {
  const provider = createOpenAICompatible({ name: "sheaf", baseURL });
  const one = (value, name = model) => embed({ model: provider.embeddingModel(name), value, maxRetries: 0 });
  const list = (values) => embedMany({ model: provider.embeddingModel(model), values, maxRetries: 0 });
  const { embedding, usage } = await one(texts[0]);
  return {
    query: embedding,
    documents: (await list(texts)).embeddings,
    together: (await Promise.all(Array(10).fill(texts).flat().map((text) => one(text)))).map(({ embedding }) => embedding), // prettier-ignore
    many: (await list(many)).embeddings,
    tokens: usage.tokens,
    errors: { empty: await messageOf(one("")), unknown: await messageOf(one("x", "ada-002")) },
  };
});
