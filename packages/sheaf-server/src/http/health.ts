import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Type } from "./schema/json-schema.ts";
import { json, text, type RouteSchema } from "./schema/route-schema.ts";

const health = Type.Object({
  status: text("ok, warming, restarting, unavailable, draining or failed."),
  models: Type.Array(
    Type.Object({
      name: Type.String(),
      state: Type.String(),
      device: Type.Optional(Type.String()),
      reason: Type.Optional(Type.String()),
    }),
  ),
});

const liveSchema: RouteSchema = {
  summary: "Check that the process is alive",
  tags: ["health"],
  operationId: "live",
  security: [],
  response: { 200: json("The process is alive.", Type.Object({ status: Type.Literal("ok") })) },
};

const healthSchema: RouteSchema = {
  summary: "Check that requests are served",
  tags: ["health"],
  operationId: "ready",
  security: [],
  response: {
    200: json("Every model is ready.", health),
    503: json("A model is loading or failed, or the server is draining.", health),
  },
};

/** The answer of `/health`; `ok` is 200, everything else 503. */
export interface Health {
  readonly status: string;
  readonly [more: string]: unknown;
}

/** `/livez` says the process answers; `/health` and `/readyz` say whether requests are served, 503 when not. */
export function healthRoutes(app: FastifyInstance, health: (request: FastifyRequest) => Health): void {
  app.get("/livez", { schema: liveSchema, logLevel: "warn" }, () => ({ status: "ok" }));

  const ready = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const now = health(request);
    if (now.status === "warming") reply.header("retry-after", "1");
    return reply.code(now.status === "ok" ? 200 : 503).send(now);
  };
  app.get("/readyz", { schema: healthSchema, logLevel: "warn" }, ready);
  app.get("/health", { schema: healthSchema, logLevel: "warn" }, ready);
}
