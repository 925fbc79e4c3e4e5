import type { FastifyInstance } from "fastify";
import type { Models } from "../../models/models.ts";
import type { RouteSchema } from "../../../http/schema/route-schema.ts";
import { packageVersion } from "../../../shared/version.ts";
import { jsonOf } from "../../../http/bodies/body.ts";
import { commaSeparated, jsonBytes } from "../../codec/json-bytes.ts";
import { embedTexts } from "../embed-texts.ts";
import { listOf, shown } from "./models.ts";
import { readEmbed, readPrompt, readShow } from "./request.ts";
import * as schemas from "./schemas.ts";

/** The routes of Ollama for embedding models: https://docs.ollama.com/api */
export function ollamaRoutes(app: FastifyInstance, models: Models): void {
  const described = (schema: (models: Models) => RouteSchema): object => {
    const now = (): RouteSchema => schema(models);
    return { schema: now(), config: { describe: now } };
  };
  app.post("/api/embed", described(schemas.embed), async (request, reply) => {
    const startedAtMs = performance.now();
    const { model, vectors, tokens } = await embedTexts(models, request, (body) => readEmbed(body, models));
    const durationNs = Math.round((performance.now() - startedAtMs) * 1e6);
    const rows = commaSeparated(vectors.map((vector) => [vector]));
    const body = jsonBytes([
      `{"model":${JSON.stringify(model.name)},"embeddings":[`,
      ...rows,
      // A served model is loaded before its first request.
      `],"total_duration":${durationNs},"load_duration":0,"prompt_eval_count":${tokens}}`,
    ]);
    return reply.type("application/json").send(body);
  });
  app.post("/api/embeddings", described(schemas.embeddings), async (request, reply) => {
    const { vectors } = await embedTexts(models, request, (body) => readPrompt(body, models));
    return reply.type("application/json").send(jsonBytes([`{"embedding":`, vectors[0]!, "}"]));
  });
  app.get("/api/tags", { schema: schemas.tags }, () => listOf(models));
  app.post("/api/show", described(schemas.show), ({ body }) =>
    shown(readShow(jsonOf(body, models.settings), models), models),
  );
  const version = packageVersion();
  app.get("/api/version", { schema: schemas.version, logLevel: "warn" }, () => ({ version }));
}
