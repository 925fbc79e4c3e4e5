import type { FastifyInstance } from "fastify";
import type { Models } from "../../models/models.ts";
import type { RouteSchema } from "../../../http/schema/route-schema.ts";
import { commaSeparated, jsonBytes } from "../../codec/json-bytes.ts";
import { embedTexts } from "../embed-texts.ts";
import { readEmbed } from "./embed-request.ts";
import { embedAll } from "./embed-all.ts";
import { infoOf } from "./info.ts";
import { predict } from "./predict.ts";
import * as schemas from "./schemas.ts";

/** The routes of text-embeddings-inference: https://huggingface.github.io/text-embeddings-inference/ */
export function teiRoutes(app: FastifyInstance, models: Models): void {
  const described = (schema: (models: Models) => RouteSchema): object => {
    const now = (): RouteSchema => schema(models);
    return { schema: now(), config: { describe: now } };
  };
  app.post("/embed", described(schemas.embed), async (request, reply) => {
    const { vectors } = await embedTexts(models, request, readEmbed);
    const rows = commaSeparated(vectors.map((vector) => [vector]));
    return reply.type("application/json").send(jsonBytes(["[", ...rows, "]"]));
  });
  app.post("/embed_all", described(schemas.embedAll), (request, reply) => embedAll(models, request, reply));
  app.post("/predict", described(schemas.predict), (request, reply) => predict(models, request, reply));
  app.get("/info", { schema: schemas.info }, () => infoOf(models));
}
