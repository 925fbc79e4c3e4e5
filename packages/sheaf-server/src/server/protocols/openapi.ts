import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import type { Settings } from "../settings.ts";
import { packageVersion } from "../../shared/version.ts";

// The page's own files and nothing else; it sets styles on elements.
const contentPolicy =
  "default-src 'self'; base-uri 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'self'; style-src 'self' 'unsafe-inline'";

/** `GET /openapi.json` (OpenAPI 3.1) and its page at `/docs`, which loads nothing from elsewhere. */
export async function documentRoutes(app: FastifyInstance, { apiKey }: Settings): Promise<void> {
  const hasKey = apiKey !== undefined;
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Sheaf", version: packageVersion(), description: "Model inference with dynamic batching." },
      tags: ["inference", "OpenAI", "Open Inference Protocol", "health", "observation"].map((name) => ({ name })),
      ...(hasKey
        ? { components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } }, security: [{ key: [] }] }
        : {}),
    },
  });
  await app.register(swaggerUi, {
    routePrefix: "/docs",
    staticCSP: true,
    transformStaticCSP: () => contentPolicy,
    // Without the bar that asks for the address of another description.
    uiConfig: { validatorUrl: null, deepLinking: true, layout: "BaseLayout" },
    theme: { title: "Sheaf: the HTTP API" },
  });
  app.get("/openapi.json", { schema: { hide: true } }, () => app.swagger());
}
