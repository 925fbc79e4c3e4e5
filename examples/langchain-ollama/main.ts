// Retrieval-augmented generation with LangChain up to the prompt: passages and questions are embedded through Ollama's route, by
// LangChain's own client. 64 questions at once are 64 requests of one text, and Sheaf answers them in a few runs of the model.
import assert from "node:assert/strict";
import { PromptTemplate } from "@langchain/core/prompts";
import { RunnablePassthrough, RunnableSequence } from "@langchain/core/runnables";
import { OllamaEmbeddings } from "@langchain/ollama";
import { builtinModels, createServer, defaultSettings, workerModel } from "sheaf-server";

// In your project this is `npx sheaf serve`, or Ollama: only the address differs.
const server = await createServer({
  models: [workerModel(builtinModels["use-lite"](), defaultSettings)],
  settings: { port: 0, logLevel: "silent" },
});
const url = await server.listen();
await server.ready();

// Without maxConcurrency this client asks one question after the other.
const embeddings = new OllamaEmbeddings({ model: "use-lite", baseUrl: url, maxConcurrency: 64 });

const passages = [
  "Cats sleep for most of the day and hunt at dusk.",
  "A guitar has six strings, which are tuned from low to high.",
  "Bread dough rises because yeast turns sugar into gas.",
  "The Moon causes the tides of the sea.",
];
const vectors = await embeddings.embedDocuments(passages);
assert.deepEqual(vectors, await fromOpenAiRoute(passages));

const nearest = (question: number[]): string => {
  const scores = vectors.map((vector) => vector.reduce((sum, value, i) => sum + value * question[i], 0));
  return passages[scores.indexOf(Math.max(...scores))];
};
const rag = RunnableSequence.from([
  {
    context: async (question: string) => nearest(await embeddings.embedQuery(question)),
    question: new RunnablePassthrough<string>(),
  },
  // Your chat model follows here: `.pipe(new ChatOllama({ … }))`.
  PromptTemplate.fromTemplate("Answer from this alone: {context}\nQuestion: {question}"),
]);

const asked = [
  "How long do cats sleep?",
  "How many strings does a guitar have?",
  "Why does dough rise?",
  "What makes the tides?",
];
const questions = Array.from({ length: 64 }, (_, i) => asked[i % asked.length]);
const before = await runsSoFar();
const prompts = await Promise.all(questions.map((question) => rag.invoke(question)));
const runs = (await runsSoFar()) - before;
const answered = prompts.filter((prompt, i) => prompt.value.includes(passages[i % passages.length])).length;
console.log(
  `${questions.length} questions in ${runs} runs, ${answered} with the right passage; same vectors as /v1/embeddings`,
);
assert.equal(answered, questions.length);
assert.ok(runs < questions.length);
await server.close();

/** The server's own count, which Prometheus scrapes. */
async function runsSoFar(): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return [...metrics.matchAll(/^sheaf_batches_total\{.*\} (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}

async function fromOpenAiRoute(input: string[]): Promise<number[][]> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ model: "use-lite", input });
  const reply = await fetch(`${url}/v1/embeddings`, { method: "POST", headers, body });
  const { data } = (await reply.json()) as { data: { embedding: number[] }[] };
  return data.map(({ embedding }) => embedding);
}
