import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Settings } from "../../settings/settings.ts";
import type { RouteSchema } from "../../http/schema/route-schema.ts";
import { sendProblem } from "../../http/replies.ts";
import { Problem } from "../../problems/problem.ts";
import { packageVersion } from "../../shared/version.ts";
import { needsKey } from "../../tenants/callers.ts";
import type { Models } from "../models/models.ts";

// Only the page's own files; it sets inline styles.
const contentPolicy =
  "default-src 'self'; base-uri 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'self'; style-src 'self' 'unsafe-inline'";

/**
 * `GET /openapi.json` (OpenAPI 3.1) and its page at `/docs`, which loads nothing from elsewhere. They need no key, so they must be
 * cheap: the description is built once for each change of the models.
 */
export async function documentRoutes(app: FastifyInstance, models: Models, settings: Settings): Promise<void> {
  const hasKey = needsKey(settings);
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Sheaf", version: packageVersion(), description: "Model inference with dynamic batching." },
      tags: [
        "inference",
        "OpenAI",
        "TEI",
        "Cohere",
        "Ollama",
        "Weaviate",
        "Open Inference Protocol",
        "health",
        "observation",
      ].map((name) => ({ name })),
      ...(hasKey
        ? { components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } }, security: [{ key: [] }] }
        : {}),
    },
  });
  const described = describedRoutes(app);
  let made: { readonly models: readonly unknown[]; readonly bytes: Buffer; readonly etag: string } | undefined;
  const send = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const served = models.deployments.flatMap(({ name, current }) => [name, current]);
    if (made?.models.length !== served.length || made.models.some((model, index) => model !== served[index])) {
      const bytes = Buffer.from(JSON.stringify(withSchemas(app.swagger() as unknown as OpenApi, described)));
      made = { models: served, bytes, etag: `"${createHash("sha256").update(bytes).digest("base64url")}"` };
    }
    const { bytes, etag } = made;
    void reply.headers({ etag, "cache-control": "no-cache" });
    if (request.headers["if-none-match"] === etag) return reply.code(304).send();
    return reply.type("application/json; charset=utf-8").send(bytes);
  };
  await app.register(swaggerUi, {
    // Its own handlers would copy the description twice per request.
    uiHooks: {
      onRequest: (request, reply, done) => {
        const { url } = request.routeOptions;
        if (url === "/docs/json") send(request, reply);
        else if (url === "/docs/yaml")
          sendProblem(reply, new Problem("NOT_FOUND", "There is no /docs/yaml; /openapi.json has the description."));
        else done();
      },
    },
    routePrefix: "/docs",
    staticCSP: true,
    transformStaticCSP: () => contentPolicy,
    // Without the bar that asks for the address of another description.
    uiConfig: { validatorUrl: null, deepLinking: true, layout: "BaseLayout" },
    theme: { title: "Sheaf: the HTTP API" },
  });
  app.get("/openapi.json", { schema: { hide: true } }, send);
}

interface DescribedRoute {
  readonly path: string;
  readonly method: string;
  readonly describe: () => RouteSchema;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: object;
}

/** Collects routes added from now on whose schemas depend on the models. */
function describedRoutes(app: FastifyInstance): readonly DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  app.addHook("onRoute", ({ url, method, config }) => {
    if (config?.describe === undefined) return;
    const path = url.replaceAll(/:([^/]+)/g, "{$1}");
    routes.push({ path, method: String(method).toLowerCase(), describe: config.describe });
  });
  return routes;
}

/** Fills in the current names and inputs of the models, because swagger builds its document only once. */
function withSchemas(document: OpenApi, routes: readonly DescribedRoute[]): object {
  const paths: Record<string, Record<string, Operation>> = { ...document.paths };
  for (const { path, method, describe } of routes) {
    const operation = paths[path]?.[method];
    if (operation === undefined) continue;
    const { params, body, bodyIsOptional = false } = describe();
    const parameters = operation.parameters?.map((parameter) =>
      parameter.in === "path" ? { ...parameter, schema: propertiesOf(params)[parameter.name] } : parameter,
    );
    const requestBody = operation.requestBody && {
      ...operation.requestBody,
      required: !bodyIsOptional,
      content: { "application/json": { schema: body } },
    };
    const updated = { ...operation, ...(parameters && { parameters }), ...(requestBody && { requestBody }) };
    paths[path] = { ...paths[path], [method]: updated };
  }
  return { ...document, paths };
}

function propertiesOf(schema: RouteSchema["params"]): Readonly<Record<string, object>> {
  const { properties = {} }: { readonly properties?: Readonly<Record<string, object>> } = schema ?? {};
  return properties;
}
