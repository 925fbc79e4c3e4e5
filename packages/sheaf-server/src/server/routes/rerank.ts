import type { FastifyInstance } from "fastify";
import { jsonOf } from "../body.ts";
import { callOptionsOf } from "../call-options.ts";
import { objectOf } from "../inputs.ts";
import type { ServedModel } from "../served-model.ts";
import type { Models } from "../models.ts";
import { vectorOf } from "../outputs.ts";
import { invalid, Problem } from "../problem.ts";
import { problemFor } from "../replies.ts";
import { rerankSchema } from "../schemas.ts";

/** `POST /rerank`: texts by how well they answer a query, the best first. */
export function rerankRoute(app: FastifyInstance, models: Models): void {
  app.post("/rerank", { schema: rerankSchema }, async (request, reply) => {
    // The model is named in the body: a draining server says so before it reads one.
    if (models.isDraining) models.take(undefined, "model");
    const keys = ["query", "texts", "model"];
    const { query, texts, model: name } = objectOf(jsonOf(request.body), "", "an object with query and texts", keys);
    if (name !== undefined && typeof name !== "string") throw invalid("model", "the name of a model", name);
    const model = models.take(name ?? models.all.find(canRerank)?.name, "model");
    if (!canRerank(model)) {
      const message = `${model.name} can not rank texts; serve a cross-encoder or a text embedding model.`;
      throw new Problem("INVALID_INPUT", message, { param: "model" });
    }
    const isPair = model.definition.input.kind === "text-pair";
    const items = readItems(query, texts, model, isPair);
    const options = callOptionsOf(request, model.settings);
    const outcomes = await model.inferAll(items, options).catch((error: unknown) => {
      throw problemFor(error, model);
    });
    const outputs = outcomes.map((outcome) => {
      if (outcome.status === "rejected") throw problemFor(outcome.reason, model);
      return outcome.value.output;
    });
    const scores = isPair ? outputs.map((output) => (output as { score: number }).score) : similarities(outputs);
    const ranked = scores.map((score, index) => ({ index, score })).sort((a, b) => b.score - a.score);
    return reply.type("application/json").send(JSON.stringify(ranked));
  });
}

/** Cross-encoders score; text embedding models rank by the cosine of query and text. */
function canRerank({ definition: { input, output } }: ServedModel): boolean {
  return (input.kind === "text-pair" && output.kind === "score") || (input.kind === "text" && output.kind === "vector");
}

function readItems(query: unknown, texts: unknown, model: ServedModel, isPair: boolean): unknown[] {
  if (!Array.isArray(texts)) throw invalid("texts", "an array of texts", texts);
  if (texts.length === 0) throw invalid("texts", "an array that is not empty", texts);
  const { maxInputs, queueMaxSize } = model.settings;
  const most = Math.min(maxInputs, queueMaxSize - (isPair ? 0 : 1));
  if (texts.length > most)
    throw invalid("texts", `an array of at most ${most} texts (MAX_INPUTS, QUEUE_MAX_SIZE)`, texts);
  if (!isPair) return [model.parse(query, "query"), ...texts.map((text, i) => model.parse(text, `texts[${i}]`))];
  return texts.map((text: unknown, i) => {
    if (typeof text !== "string" || text === "") throw invalid(`texts[${i}]`, "a text that is not empty", text);
    return model.parse({ query, text }, "");
  });
}

/** Cosines of the first vector with each of the others. */
function similarities(outputs: readonly unknown[]): number[] {
  const [query, ...texts] = outputs.map(vectorOf);
  const lengthOf = (vector: Float32Array): number => Math.hypot(...vector);
  const queryLength = lengthOf(query!);
  return texts.map((text) => {
    const product = text.reduce((sum, value, i) => sum + value * query![i]!, 0);
    const lengths = queryLength * lengthOf(text);
    return lengths === 0 ? 0 : product / lengths;
  });
}
