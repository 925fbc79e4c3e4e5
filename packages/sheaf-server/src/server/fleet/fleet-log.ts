import type { FastifyBaseLogger } from "fastify";

export type FleetLog = Pick<FastifyBaseLogger, "info" | "warn">;
