// In Node, Bun and Deno.
import OpenAI from "openai";
import { VERSION } from "openai/version";
import { answer, given, messageOf } from "./client.mjs";

const { model, texts, many } = given;

await answer(VERSION, async (baseURL) => {
  const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
  const embed = async (input, { model: name = model, timeout, ...options } = {}) => {
    const { data } = await client.embeddings.create({ model: name, input, ...options }, timeout && { timeout });
    return data.map(({ embedding }) => [...embedding]);
  };
  return {
    query: (await embed(texts[0]))[0],
    documents: await embed(texts),
    floats: await embed(texts, { encoding_format: "float" }),
    together: (await Promise.all(Array(10).fill(texts).flat().map((text) => embed(text)))).flat(), // prettier-ignore
    many: await embed(many),
    model: (await client.models.retrieve(model)).id,
    errors: {
      empty: await messageOf(embed("")),
      unknown: await messageOf(embed("x", { model: "ada-002" })),
      tokens: await messageOf(embed([[1, 2, 3]])),
      timeout: await messageOf(embed(many, { timeout: 1 })),
    },
  };
});
