import { readFileSync } from "node:fs";
import { OpenAIEmbeddings } from "@langchain/openai";
import { answer, given, messageOf } from "./client.mjs";

const manifest = new URL("../node_modules/@langchain/openai/package.json", import.meta.url);
const { model, texts, many } = given;

await answer(JSON.parse(readFileSync(manifest)).version, async (baseURL) => {
  const embeddings = (name = model, options = {}) =>
    new OpenAIEmbeddings({ model: name, apiKey: "none", maxRetries: 0, configuration: { baseURL }, ...options });
  return {
    query: await embeddings().embedQuery(texts[0]),
    documents: await embeddings().embedDocuments(texts),
    many: await embeddings(model, { batchSize: 2048 }).embedDocuments(many),
    errors: {
      empty: await messageOf(embeddings().embedQuery("")),
      unknown: await messageOf(embeddings("ada-002").embedQuery("x")),
    },
  };
});
