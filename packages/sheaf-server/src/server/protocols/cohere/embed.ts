import type { FastifyInstance } from "fastify";
import { base64Of, commaSeparated, jsonBytes, type JsonParts } from "../../codec/json-bytes.ts";
import type { Models } from "../../models/models.ts";
import type { RouteSchema } from "../../../http/schema/route-schema.ts";
import { embedTexts } from "../embed-texts.ts";
import { readEmbed, type CohereTexts, type EmbeddingType } from "./request.ts";
import { embedSchema } from "./schemas.ts";

/** `POST /v1/embed` and `/v2/embed`, as Cohere's clients send them. */
export function cohereRoutes(app: FastifyInstance, models: Models): void {
  for (const version of [1, 2] as const) {
    const schema = (): RouteSchema => embedSchema(models, version);
    app.post(`/v${version}/embed`, { schema: schema(), config: { describe: schema } }, async (request, reply) => {
      let wanted!: CohereTexts;
      const { vectors, tokens } = await embedTexts(models, request, (body) => (wanted = readEmbed(body, version)));
      const meta = `{"api_version":{"version":"${version}"},"billed_units":{"input_tokens":${tokens}}}`;
      const body = jsonBytes([
        `{"id":${JSON.stringify(request.id)},"texts":${JSON.stringify(wanted.texts)},"embeddings":`,
        ...embeddingsJson(vectors, wanted.types),
        `,"response_type":"${wanted.types === undefined ? "embeddings_floats" : "embeddings_by_type"}","meta":${meta}}`,
      ]);
      return reply.type("application/json").send(body);
    });
  }
}

function embeddingsJson(vectors: readonly Float32Array[], types: readonly EmbeddingType[] | undefined): JsonParts {
  const floats = (): JsonParts => ["[", ...commaSeparated(vectors.map((vector) => [vector])), "]"];
  if (types === undefined) return floats();
  const named = types.map((type): JsonParts => {
    if (type === "float") return ['"float":', ...floats()];
    return [`"base64":${JSON.stringify(vectors.map(base64Of))}`];
  });
  return ["{", ...commaSeparated(named), "}"];
}
