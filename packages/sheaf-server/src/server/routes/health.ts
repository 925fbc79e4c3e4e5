import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Models } from "../models.ts";
import { messageOf } from "../problem.ts";
import { healthSchema, liveSchema } from "../schemas.ts";

/** Paths that need no key and are served while draining. */
export const healthPaths: ReadonlySet<string> = new Set([
  "/health",
  "/livez",
  "/readyz",
  "/v2/health/live",
  "/v2/health/ready",
]);

/** `/livez` says the process answers; `/health` and `/readyz` say whether requests are served, 503 when not. */
export function healthRoutes(app: FastifyInstance, models: Models): void {
  app.get("/livez", { schema: liveSchema, logLevel: "warn" }, () => ({ status: "ok" }));

  const ready = (_request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const { status } = models;
    const list = models.all.map(({ name, state, failure }) => ({
      name,
      state,
      ...(failure === undefined ? {} : { reason: messageOf(failure) }),
    }));
    return reply.code(status === "ok" ? 200 : 503).send({ status, models: list });
  };
  app.get("/readyz", { schema: healthSchema, logLevel: "warn" }, ready);
  app.get("/health", { schema: healthSchema, logLevel: "warn" }, ready);
}
