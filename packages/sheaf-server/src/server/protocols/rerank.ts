import type { FastifyInstance, FastifyReply } from "fastify";
import { inferenceHeaders } from "../../http/call-options.ts";
import { Type } from "../../http/schema/json-schema.ts";
import { count, described, errorResponses, json, text, type RouteSchema } from "../../http/schema/route-schema.ts";
import { invalid } from "../../problems/problem.ts";
import { textSchema } from "../codec/inputs.ts";
import { ranksTexts } from "../contract/model-definition.ts";
import type { Models } from "../models/models.ts";
import {
  field,
  ignored,
  integerFrom,
  modelThat,
  object,
  priority,
  readLater,
  required,
  trueOrFalse,
} from "./fields.ts";
import { rankTexts, textsToRank, type TextsToRank } from "./rank-texts.ts";
import { limitOf, promptTokens, tokenLimit, truncation, warnings } from "./truncation.ts";

type Path = "/rerank" | "/v1/rerank" | "/v2/rerank";

/**
 * `POST /rerank`: ranks texts by how well they answer a query, best first. With `texts` the request and reply are TEI's; with
 * `documents`, and on `/v1/rerank` and `/v2/rerank`, those of Cohere, Jina and vLLM.
 */
export function rerankRoutes(app: FastifyInstance, models: Models): void {
  for (const path of ["/rerank", "/v1/rerank", "/v2/rerank"] as const) {
    const read = path === "/rerank" ? readTextsOrDocuments : (body: unknown) => readDocuments(body, path);
    app.post(
      path,
      described(() => rerankSchema(models, path)),
      (_request, reply) => answer(models, reply, read),
    );
  }
}

const rankingModel = field(modelThat(ranksTexts), "Default: the first model that can rank.");
const topN = field(integerFrom(0), "Maximum number of results; 0, the default, returns all.");
const query = required(readLater(({ settings }) => textSchema(settings)));

const textsBody = object("an object with query and texts", {
  query,
  texts: required(textsToRank((text) => text)),
  model: rankingModel,
  raw_scores: field(trueOrFalse, "Return the logits of a cross-encoder instead of scores from 0 to 1.", false),
  ...truncation,
  return_text: field(trueOrFalse, "Return each text with its score.", false),
  top_n: topN,
});

const documentsBody = (returnDocuments: boolean) =>
  object("an object with query and documents", {
    query,
    documents: required(textsToRank((text) => Type.Union([text, Type.Object({ text })]))),
    model: rankingModel,
    top_n: topN,
    return_documents: field(trueOrFalse, "Return each document with its score.", returnDocuments),
    max_tokens_per_doc: field(tokenLimit, "Must be at least the number of tokens to which the model truncates texts."),
    max_tokens_per_query: field(
      tokenLimit,
      "Must be at least the number of tokens to which the model truncates texts.",
    ),
    truncate_prompt_tokens: field(promptTokens, "vLLM's limit of a query and its document; -1 is the model's own."),
    truncation_side: truncation.truncation_direction,
    priority,
    // Documents are not split into chunks.
    ...ignored("max_chunks_per_doc", "user"),
  });

// Jina and vLLM return the documents unless told not to; Cohere's version 2 only if asked.
const documentsBodies = {
  "/rerank": documentsBody(true),
  "/v1/rerank": documentsBody(true),
  "/v2/rerank": documentsBody(false),
};

interface RankedTexts extends TextsToRank {
  readonly returnText: boolean;
}

interface RankedDocuments extends TextsToRank {
  /** Texts, or objects with a `text`. */
  readonly documents: readonly unknown[];
  readonly returnDocuments: boolean;
}

/** The two kinds of request differ in the field with the texts. */
function readTextsOrDocuments(body: unknown): RankedTexts | RankedDocuments {
  const hasDocuments = typeof body === "object" && body !== null && "documents" in body && !("texts" in body);
  return hasDocuments ? readDocuments(body, "/rerank") : readTexts(body);
}

function readTexts(body: unknown): RankedTexts {
  const { query, texts, model, raw_scores, truncate, return_text, top_n } = textsBody.read(body, "");
  return {
    name: model,
    query,
    texts,
    path: "texts",
    pathOf: (i) => `texts[${i}]`,
    mostRanks: mostRanksOf(top_n),
    isRaw: raw_scores,
    truncate,
    returnText: return_text,
  };
}

function readDocuments(body: unknown, path: Path): RankedDocuments {
  const { query, documents, model, top_n, return_documents, priority, ...limits } = documentsBodies[path].read(
    body,
    "",
  );
  return {
    name: model,
    query,
    texts: documents.map(textOfDocument),
    documents,
    path: "documents",
    pathOf: (i) => (isObject(documents[i]) ? `documents[${i}].text` : `documents[${i}]`),
    mostRanks: mostRanksOf(top_n),
    returnDocuments: return_documents,
    tokenLimits: (["max_tokens_per_doc", "max_tokens_per_query", "truncate_prompt_tokens"] as const).map((field) =>
      limitOf(limits[field], field),
    ),
    priority,
  };
}

/** 0 stands for all, as with vLLM. */
const mostRanksOf = (topN: number | undefined): number | undefined => (topN === 0 ? undefined : topN);

const isObject = (document: unknown): document is { readonly text?: unknown } =>
  typeof document === "object" && document !== null && !Array.isArray(document);

function textOfDocument(document: unknown, index: number): unknown {
  if (typeof document === "string") return document;
  if (!isObject(document)) throw invalid(`documents[${index}]`, 'a text or an object with a "text"', document);
  return document.text;
}

type Read = Parameters<typeof rankTexts<RankedTexts | RankedDocuments>>[2];

async function answer(models: Models, reply: FastifyReply, read: Read): Promise<FastifyReply> {
  const { wanted, model, ranks, tokens, warnings } = await rankTexts(models, reply, read);
  reply.type("application/json");
  if (!("documents" in wanted)) {
    const shown = ranks.map(({ index, score }) => ({
      index,
      ...(wanted.returnText ? { text: wanted.texts[index] } : {}),
      score,
    }));
    return reply.send(JSON.stringify(shown));
  }
  return reply.send(JSON.stringify({
    id: reply.request.id,
    model: model.name,
    results: ranks.map(({ index, score }) => ({ index, relevance_score: score, ...documentOf(wanted, index) })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    meta: { billed_units: { input_tokens: tokens }, tokens: { input_tokens: tokens }, warnings },
  })); // prettier-ignore
}

/** As an object, even if the caller gave a bare text. */
function documentOf({ documents, returnDocuments }: RankedDocuments, index: number): object {
  if (!returnDocuments) return {};
  const document = documents[index];
  return { document: typeof document === "string" ? { text: document } : document };
}

const textsReply = Type.Array(
  Type.Object({
    index: count("Index in texts."),
    text: Type.Optional(text("Only with return_text.")),
    score: Type.Number(),
  }),
);

const tokens = Type.Object({ input_tokens: count("Number of tokens.") });

const documentsReply = Type.Object({
  id: text("The request's id."),
  model: Type.String(),
  results: Type.Array(
    Type.Object({
      index: count("Index in documents."),
      relevance_score: Type.Number(),
      document: Type.Optional(Type.Object({ text: Type.String() })),
    }),
  ),
  usage: Type.Object({ prompt_tokens: count("Number of tokens."), total_tokens: count("Equal to prompt_tokens.") }),
  meta: Type.Object({ billed_units: tokens, tokens, warnings }),
});

const operationIds: Readonly<Record<Path, string>> = {
  "/rerank": "rerank",
  "/v1/rerank": "rerankV1",
  "/v2/rerank": "rerankV2",
};

function rerankSchema(models: Models, path: Path): RouteSchema {
  const isBoth = path === "/rerank";
  const documents = documentsBodies[path].schema(models);
  return {
    summary: isBoth ? "Rank texts by how well they answer a query" : "Rank documents (Cohere, Jina, vLLM)",
    description:
      "Ranks by the score of a cross-encoder, or by the cosine of the vectors of a text embedding model." +
      (isBoth ? " A request with texts gets TEI's reply, one with documents that of Cohere, Jina and vLLM." : ""),
    tags: [isBoth ? "inference" : "Cohere"],
    operationId: operationIds[path],
    headers: inferenceHeaders(models.settings),
    body: isBoth ? Type.Union([textsBody.schema(models), documents]) : documents,
    response: {
      200: json("The results, best first.", isBoth ? Type.Union([textsReply, documentsReply]) : documentsReply),
      ...errorResponses("message"),
    },
  };
}
