import { Type, type Schema } from "../../http/schema/json-schema.ts";
import { count, errorResponses, json, text, type RouteSchema } from "../../http/schema/route-schema.ts";
import { ranksTexts } from "../contract/model-definition.ts";
import type { Models } from "../models/models.ts";
import { ignoredDocumentKeys } from "./rerank-request.ts";
import { ignored, inferenceHeaders, knownFields, modelName, nullable, textItem, truncationFields } from "./schemas.ts";

type Path = "/rerank" | "/v1/rerank" | "/v2/rerank";

const operationIds: Readonly<Record<Path, string>> = {
  "/rerank": "rerank",
  "/v1/rerank": "rerankV1",
  "/v2/rerank": "rerankV2",
};

export function rerankSchema(models: Models, path: Path): RouteSchema {
  const isBoth = path === "/rerank";
  return {
    summary: isBoth ? "Rank texts by how well they answer a query" : "Rank documents, the way of Cohere, Jina and vLLM",
    description:
      "By a cross-encoder's score, or by the cosine of the vectors of a text embedding model." +
      (isBoth ? " With texts the reply is TEI's, with documents that of Cohere, Jina and vLLM." : ""),
    tags: [isBoth ? "inference" : "Cohere"],
    operationId: operationIds[path],
    headers: inferenceHeaders(models.settings),
    body: isBoth
      ? Type.Union([textsBody(models), documentsBody(models, true)])
      : documentsBody(models, path === "/v1/rerank"),
    response: {
      200: json("The best first.", isBoth ? Type.Union([textsReply, documentsReply]) : documentsReply),
      ...errorResponses("message"),
    },
  };
}

function rankingModel(models: Models): Schema {
  const ranking = models.all.filter(({ definition }) => ranksTexts(definition));
  return modelName(ranking, "Default: the first model that can rank.");
}

/** Of a model that compares vectors: it needs a place for the query too. */
const lengthOf = ({ settings: { maxInputs, queueMaxSize } }: Models): Schema => ({
  minItems: 1,
  maxItems: Math.max(1, Math.min(maxInputs, queueMaxSize - 1)),
});

const topN = Type.Integer({ minimum: 0, description: "Most results; default and 0: all." });

function textsBody(models: Models): Schema {
  const item = textItem(models.settings.maxTextChars);
  return knownFields({
    query: item,
    texts: Type.Array(item, lengthOf(models)),
    model: nullable(rankingModel(models)),
    raw_scores: nullable(
      Type.Boolean({ default: false, description: "A cross-encoder's logits, instead of scores from 0 to 1." }),
    ),
    ...truncationFields,
    return_text: nullable(Type.Boolean({ default: false, description: "Each text beside its score." })),
    top_n: nullable(topN),
  });
}

function documentsBody(models: Models, returnsByDefault: boolean): Schema {
  const item = textItem(models.settings.maxTextChars);
  const least = Math.max(1, ...models.all.map(({ definition: { input } }) => ("maxTokens" in input ? (input.maxTokens ?? 1) : 1)));
  return knownFields({
    query: item,
    documents: Type.Array(Type.Union([item, Type.Object({ text: item })]), lengthOf(models)),
    model: nullable(rankingModel(models)),
    top_n: nullable(topN),
    return_documents: nullable(
      Type.Boolean({ default: returnsByDefault, description: "Each document beside its score." }),
    ),
    max_tokens_per_doc: nullable(
      Type.Integer({ minimum: least, description: "At least the number of tokens where the model cuts texts." }),
    ),
    ...ignored(ignoredDocumentKeys),
  });
} // prettier-ignore

const textsReply = Type.Array(
  Type.Object({
    index: count("Place in texts."),
    text: Type.Optional(text("With return_text.")),
    score: Type.Number(),
  }),
);

const tokens = Type.Object({ input_tokens: count("Tokens.") });

const documentsReply = Type.Object({
  id: text("The request's id."),
  model: Type.String(),
  results: Type.Array(
    Type.Object({
      index: count("Place in documents."),
      relevance_score: Type.Number(),
      document: Type.Optional(Type.Object({ text: Type.String() })),
    }),
  ),
  usage: Type.Object({ prompt_tokens: count("Tokens."), total_tokens: count("The same.") }),
  meta: Type.Object({ billed_units: tokens, tokens }),
});
