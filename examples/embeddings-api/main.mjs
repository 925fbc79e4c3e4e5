// 500 calls for one embedding each, made at the same time, become a few requests. With OPENAI_API_KEY set it asks OpenAI;
// without, an API of this process.
import assert from "node:assert/strict";
import { openaiEmbeddings, openaiFetch } from "sheaf/adapters/openai";
import { localApi } from "./local-api.mjs";

const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL = "https://api.openai.com/v1" } = process.env;
const local = apiKey ? undefined : await localApi();
// With the package openai installed: new OpenAI() instead of openaiFetch(…).
const client = openaiFetch({ baseURL: local?.baseURL ?? OPENAI_BASE_URL, apiKey: apiKey ?? "none" });
const embed = openaiEmbeddings(client, { model: "text-embedding-3-small" });

const texts = Array.from({ length: 500 }, (_, i) => `Text number ${i}`);
const vectors = await Promise.all(texts.map((text) => embed(text)));
const { requests, totalTokens } = embed.usage();
console.log(`${vectors.length} calls, ${requests} requests, ${totalTokens} tokens`);
assert.ok(requests <= 10);

if (local !== undefined) {
  const [fine, refused] = await Promise.allSettled([embed("a fine text"), embed("poison")]);
  console.log(`a bad text beside a fine one: ${fine.status}, ${refused.status} (${refused.reason.message})`);
  assert.deepEqual([fine.status, refused.status], ["fulfilled", "rejected"]);
  assert.deepEqual(fine.value, ["a fine text".length, "a".charCodeAt(0)]);
}
await embed.close();
local?.close();
