import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Models } from "../models/models.ts";
import { rankTexts } from "./rank-texts.ts";
import { readDocuments, readTextsOrDocuments, type DocumentsToRank } from "./rerank-request.ts";
import { rerankSchema } from "./rerank-schema.ts";

/**
 * `POST /rerank`: texts by how well they answer a query, the best first. With `texts` the request and its reply are TEI's,
 * with `documents` those of Cohere, Jina and vLLM, which `/v1/rerank` and `/v2/rerank` take too.
 */
export function rerankRoutes(app: FastifyInstance, models: Models): void {
  for (const path of ["/rerank", "/v1/rerank", "/v2/rerank"] as const) {
    const schema = (): ReturnType<typeof rerankSchema> => rerankSchema(models, path);
    // Jina and vLLM give the documents unless they are told not to; Cohere's second version never does by itself.
    const read =
      path === "/rerank" ? readTextsOrDocuments : (body: unknown) => readDocuments(body, path === "/v1/rerank");
    app.post(path, { schema: schema(), config: { describe: schema } }, (request, reply) =>
      answer(models, request, reply, read),
    );
  }
}

type Read = Parameters<typeof rankTexts<ReturnType<typeof readTextsOrDocuments>>>[2];

async function answer(models: Models, request: FastifyRequest, reply: FastifyReply, read: Read): Promise<FastifyReply> {
  const { wanted, model, ranks, tokens } = await rankTexts(models, request, read);
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
    id: request.id,
    model: model.name,
    results: ranks.map(({ index, score }) => ({ index, relevance_score: score, ...documentOf(wanted, index) })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    meta: { billed_units: { input_tokens: tokens }, tokens: { input_tokens: tokens } },
  })); // prettier-ignore
}

/** As an object, also where the caller gave a bare text. */
function documentOf({ documents, returnDocuments }: DocumentsToRank, index: number): object {
  if (!returnDocuments) return {};
  const document = documents[index];
  return { document: typeof document === "string" ? { text: document } : document };
}
