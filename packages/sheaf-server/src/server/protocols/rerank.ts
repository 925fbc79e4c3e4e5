import type { FastifyInstance } from "fastify";
import { Type } from "../../http/schema/json-schema.ts";
import { sigmoid } from "../../runners/text/pooling.ts";
import { jsonOf } from "../../http/bodies/body.ts";
import { callOptionsOf } from "../../http/call-options.ts";
import { objectOf } from "../codec/inputs.ts";
import { ranksTexts } from "../contract/model-definition.ts";
import type { ServedModel } from "../models/served-model.ts";
import type { Models } from "../models/models.ts";
import { isTruncated, vectorOf } from "../codec/outputs.ts";
import { invalid, Problem } from "../../problems/problem.ts";
import { inferEvery } from "./requests.ts";
import { count, json, problemResponses, text, type RouteSchema } from "../../http/schema/route-schema.ts";
import { inferenceHeaders, modelName, nullable, textItem } from "./schemas.ts";

/** `POST /rerank`: texts by how well they answer a query, the best first; with the fields of TEI's route. */
export function rerankRoute(app: FastifyInstance, models: Models): void {
  const schema = (): RouteSchema => rerankSchema(models);
  app.post("/rerank", { schema: schema(), config: { describe: schema } }, async (request, reply) => {
    // The model is named in the body: a draining server says so before it reads one.
    if (models.isDraining) models.take(undefined, "model");
    const { query, texts, name, rawScores, truncate, returnText } = readRerank(jsonOf(request.body, models.settings));
    const model = models.take(name ?? models.all.find(({ definition }) => ranksTexts(definition))?.name, "model");
    if (!ranksTexts(model.definition)) {
      const message = `${model.name} cannot rank texts; serve a cross-encoder or a text embedding model.`;
      throw new Problem("INVALID_INPUT", message, { param: "model" });
    }
    const isPair = model.definition.input.kind === "text-pair";
    const items = readItems(query, texts, model, isPair);
    const served = await inferEvery(model, items, callOptionsOf(request, model.settings));
    const outputs = served.map(({ value }) => value);
    if (!truncate) refuseTruncated(outputs, model, isPair);
    const scores = isPair ? outputs.map((output) => scoreOf(output, rawScores)) : similarities(outputs);
    const ranked = scores
      .map((score, index) => ({ index, ...(returnText ? { text: (texts as string[])[index] } : {}), score }))
      .sort((a, b) => b.score - a.score);
    return reply.type("application/json").send(JSON.stringify(ranked));
  });
}

interface Rerank {
  readonly query: unknown;
  readonly texts: unknown;
  readonly name: string | undefined;
  readonly rawScores: boolean;
  readonly truncate: boolean;
  readonly returnText: boolean;
}

function readRerank(body: unknown): Rerank {
  const keys = ["query", "texts", "model", "raw_scores", "truncate", "truncation_direction", "return_text"];
  const fields = objectOf(body, "", "an object with query and texts", keys);
  const name = fields["model"] ?? undefined;
  if (name !== undefined && typeof name !== "string") throw invalid("model", "the name of a model", name);
  const flag = (key: string, standard: boolean): boolean => {
    const value = fields[key] ?? standard;
    if (typeof value !== "boolean") throw invalid(key, "true or false", value);
    return value;
  };
  // Litellm sends it with every request. Texts are cut at their end: "left" would give other scores.
  const direction = fields["truncation_direction"] ?? "right";
  if (typeof direction !== "string" || direction.toLowerCase() !== "right")
    throw invalid("truncation_direction", '"right": texts are cut at their end', direction);
  return {
    query: fields["query"],
    texts: fields["texts"],
    name,
    rawScores: flag("raw_scores", false),
    truncate: flag("truncate", true),
    returnText: flag("return_text", false),
  };
}

/** How many tokens a text has is known only once a worker has read it. */
function refuseTruncated(outputs: readonly unknown[], { definition: { input } }: ServedModel, isPair: boolean): void {
  const index = outputs.findIndex(isTruncated);
  if (index < 0) return;
  const path = isPair ? `texts[${index}]` : index === 0 ? "query" : `texts[${index - 1}]`;
  const most = "maxTokens" in input ? `${input.maxTokens} tokens` : "the model takes";
  const message = `${path} has more than ${most}${isPair ? ", with the query," : ""} and truncate is false.`;
  throw new Problem("INVALID_INPUT", message, { param: path });
}

/** Between 0 and 1, or the logit itself; a model that gives no logit has one score. */
function scoreOf(output: unknown, isRaw: boolean): number {
  const { score, logit } = output as { readonly score: number; readonly logit?: number };
  if (logit === undefined) return score;
  return isRaw ? logit : sigmoid(logit);
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

const rerankSchema = (models: Models): RouteSchema => ({
  summary: "Rank texts by how well they answer a query",
  description: "By a cross-encoder's score, or by the cosine of the vectors of a text embedding model.",
  tags: ["inference"],
  operationId: "rerank",
  headers: inferenceHeaders(models.settings),
  body: Type.Object(
    {
      query: textItem(models.settings.maxTextChars),
      texts: Type.Array(textItem(models.settings.maxTextChars), {
        minItems: 1,
        maxItems: Math.max(1, Math.min(models.settings.maxInputs, models.settings.queueMaxSize - 1)),
      }),
      model: nullable(
        modelName(
          models.all.filter(({ definition }) => ranksTexts(definition)),
          "Default: the first model that can rank.",
        ),
      ),
      raw_scores: nullable(
        Type.Boolean({ default: false, description: "A cross-encoder's logits, instead of scores from 0 to 1." }),
      ),
      truncate: nullable(
        Type.Boolean({ default: true, description: "false refuses a text of more tokens than the model takes." }),
      ),
      truncation_direction: nullable(
        Type.String({
          enum: ["right", "Right"],
          description: "Texts are cut at their end; no other direction is supported.",
        }),
      ),
      return_text: nullable(Type.Boolean({ default: false, description: "Each text beside its score." })),
    },
    { additionalProperties: false },
  ),
  response: {
    200: json(
      "The best first; index is the place in texts.",
      Type.Array(
        Type.Object({
          index: count("Place in texts."),
          text: Type.Optional(text("With return_text.")),
          score: Type.Number(),
        }),
      ),
    ),
    ...problemResponses,
  },
});
