// The clients of Cohere and Ollama for JavaScript, unmodified, in one process: what a user of each gets from one server.
import { readFileSync } from "node:fs";
import process from "node:process";
import { OllamaEmbeddings } from "@langchain/ollama";
import { CohereClient, CohereClientV2 } from "cohere-ai";
import { Ollama } from "ollama";
import { given, messageOf } from "./client.mjs";

const { model, texts } = given;
const [, query] = texts;
const url = process.argv[2];
const ranksOf = ({ results }) => results.map(({ index, relevanceScore }) => ({ index, score: relevanceScore }));

async function ofCohere() {
  const options = { token: "none", baseUrl: url, environment: url, maxRetries: 0 };
  const [v1, v2] = [new CohereClient(options), new CohereClientV2(options)];
  const inputType = "search_document";
  const ranked = await v1.rerank({ model, query, documents: texts, returnDocuments: true });
  const byType = await v2.embed({ texts, model, inputType, embeddingTypes: ["float", "base64"] });
  return {
    vectors: (await v1.embed({ texts, model, inputType })).embeddings,
    v2: byType.embeddings.float,
    base64: byType.embeddings.base64,
    ranks: ranksOf(ranked),
    documents: ranked.results.map(({ document }) => document.text),
    v2_ranks: ranksOf(await v2.rerank({ model, query, documents: texts, topN: 2 })),
    errors: {
      empty: await messageOf(v2.embed({ texts: [""], model, inputType, embeddingTypes: ["float"] })),
      unknown: await messageOf(v1.rerank({ model: "none", query, documents: texts })),
      types: await messageOf(v2.embed({ texts, model, inputType, embeddingTypes: ["int8"] })),
    },
  };
}

async function ofOllama() {
  const client = new Ollama({ host: url });
  const { models } = await client.list();
  return {
    vectors: (await client.embed({ model: `${model}:latest`, input: texts })).embeddings,
    one: (await client.embeddings({ model, prompt: texts[0] })).embedding,
    models: models.map(({ name }) => name),
    capabilities: (await client.show({ model })).capabilities,
    errors: {
      empty: await messageOf(client.embed({ model, input: "" })),
      unknown: await messageOf(client.embed({ model: "none", input: "x" })),
      context: await messageOf(client.embed({ model, input: "x", options: { num_ctx: 8 } })),
    },
  };
}

async function ofLangchain() {
  const embeddings = (name = model) => new OllamaEmbeddings({ model: name, baseUrl: url, maxRetries: 0 });
  return {
    vectors: await embeddings().embedDocuments(texts),
    one: await embeddings().embedQuery(texts[0]),
    errors: {
      empty: await messageOf(embeddings().embedQuery("")),
      unknown: await messageOf(embeddings("none").embedQuery("x")),
    },
  };
}

const clients = { "cohere-ai": ofCohere, ollama: ofOllama, "@langchain/ollama": ofLangchain };
const replies = {};
const version = {};
for (const [name, replyOf] of Object.entries(clients)) {
  const manifest = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  version[name] = JSON.parse(readFileSync(manifest)).version;
  replies[name] = await replyOf();
}
process.stdout.write(JSON.stringify({ version, replies: [replies] }));
