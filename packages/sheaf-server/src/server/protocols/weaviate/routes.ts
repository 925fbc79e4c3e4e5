import type { FastifyInstance, FastifyReply } from "fastify";
import { takeUntyped } from "../../../http/bodies/body.ts";
import type { RouteSchema } from "../../../http/schema/route-schema.ts";
import { packageVersion } from "../../../shared/version.ts";
import { commaSeparated, jsonBytes } from "../../codec/json-bytes.ts";
import { embedsTexts } from "../../contract/model-definition.ts";
import type { Models } from "../../models/models.ts";
import { embedTexts } from "../embed-texts.ts";
import { readVectors, type WeaviateTexts } from "./request.ts";
import * as schemas from "./schemas.ts";

/** The contract of Weaviate's module text2vec-transformers, one text or several a request. */
export async function weaviateRoutes(app: FastifyInstance, models: Models): Promise<void> {
  await app.register(async (module) => {
    // Weaviate names no content type.
    takeUntyped(module);
    const schema = (): RouteSchema => schemas.vectors(models);
    module.post("/vectors", { schema: schema(), config: { describe: schema } }, async (request, reply) => {
      let wanted!: WeaviateTexts;
      const { vectors } = await embedTexts(models, request, (body) => (wanted = readVectors(body, models)));
      const dims = vectors[0]!.length;
      const parts = wanted.isSeveral
        ? [`{"vectors":[`, ...commaSeparated(vectors.map((vector) => [vector])), `],"dims":${dims}}`]
        : // Weaviate reads dims; its Python container writes dim.
          [`{"text":${JSON.stringify(wanted.texts)},"dim":${dims},"dims":${dims},"vector":`, vectors[0]!, "}"];
      return reply.type("application/json").send(jsonBytes(parts));
    });
  });
  const version = packageVersion();
  app.get("/meta", { schema: schemas.meta }, () => ({
    server: "sheaf",
    version,
    models: models.all.flatMap(({ name, definition: { input, output } }) => {
      if (!embedsTexts({ input, output }) || output.kind !== "vector") return [];
      return [{ name, dims: output.length, ...("maxTokens" in input ? { max_tokens: input.maxTokens } : {}) }];
    }),
  }));
}

/** Open without a key, and on every server: `/.well-known/live` and `/.well-known/ready`. */
export function wellKnownRoutes(app: FastifyInstance, models: Pick<Models, "status">): void {
  app.get("/.well-known/live", { schema: schemas.live, logLevel: "warn" }, (_request, reply) => reply.code(204).send());
  app.get("/.well-known/ready", { schema: schemas.ready, logLevel: "warn" }, (_request, reply): FastifyReply => {
    const { status } = models;
    if (status === "warming") reply.header("retry-after", "1");
    return reply.code(status === "ok" ? 204 : 503).send();
  });
}
