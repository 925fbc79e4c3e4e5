// The texts one by one but at once, with the client's own retries.
import OpenAI from "openai";
import { VERSION } from "openai/version";
import { answer, given } from "./client.mjs";

await answer(VERSION, async (baseURL) => {
  const client = new OpenAI({ baseURL, apiKey: "none" });
  const embed = async (input) => (await client.embeddings.create({ model: given.model, input })).data[0].embedding;
  return Promise.all(given.texts.map(embed));
});
