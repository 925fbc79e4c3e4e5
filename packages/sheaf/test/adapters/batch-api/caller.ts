// A process that asks for many vectors through a batch API, writes them down, and says that it is done. It may be killed at any time.
import { writeFileSync } from "node:fs";
import OpenAI from "openai";
import { batchApi } from "../../../dist/adapters/batch-api/index.js";

const [baseURL, folder, results, inputs] = process.argv.slice(2) as [string, string, string, string];
const embed = batchApi(new OpenAI({ baseURL, apiKey: "none" }), {
  endpoint: "/v1/embeddings",
  body: (input: string) => ({ model: "m", input }),
  result: ({ data }: OpenAI.CreateEmbeddingResponse) => data[0]!.embedding,
  folder,
  maxBatchSize: 700,
  concurrency: 4,
  pollMs: 10,
});
const vectors = await embed.many(Array.from({ length: Number(inputs) }, (_, n) => `text ${n}`));
writeFileSync(results, JSON.stringify(vectors));
await embed.close();
