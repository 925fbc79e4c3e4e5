import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Models } from "../server/models/models.ts";
import { healthSchema, liveSchema } from "../server/protocols/schemas.ts";

/** The answer of `/health`; `ok` is 200, everything else 503. */
export interface Health {
  readonly status: string;
  readonly [more: string]: unknown;
}

/** `/livez` says the process answers; `/health` and `/readyz` say whether requests are served, 503 when not. */
export function healthRoutes(app: FastifyInstance, health: () => Health): void {
  app.get("/livez", { schema: liveSchema, logLevel: "warn" }, () => ({ status: "ok" }));

  const ready = (_request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const now = health();
    if (now.status === "warming") reply.header("retry-after", "1");
    return reply.code(now.status === "ok" ? 200 : 503).send(now);
  };
  app.get("/readyz", { schema: healthSchema, logLevel: "warn" }, ready);
  app.get("/health", { schema: healthSchema, logLevel: "warn" }, ready);
}

/** Every model has to be ready that was there at the start or has served since. */
export function healthOf(models: Models): Health {
  const list = models.deployments.map(({ name, state, reason, current }) => ({
    name,
    state,
    ...(current?.definition.device === undefined ? {} : { device: current.definition.device }),
    ...(reason === undefined ? {} : { reason }),
  }));
  return { status: models.status, models: list };
}
