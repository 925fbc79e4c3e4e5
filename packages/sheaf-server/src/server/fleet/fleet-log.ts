import type { FastifyBaseLogger } from "fastify";

/** Where a fleet's events are written. */
export type FleetLog = Pick<FastifyBaseLogger, "info" | "warn">;
