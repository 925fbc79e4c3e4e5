import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";

/** Lets pages of these origins call the server; with none there are no CORS headers at all. */
export async function crossOrigin(app: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  await app.register(cors, {
    origin: origins.includes("*") ? "*" : [...origins],
    methods: ["GET", "POST"],
    exposedHeaders: ["x-request-id", "retry-after", "retry-after-ms", "x-sheaf-cache", "x-sheaf-truncated"],
    maxAge: 600,
  });
}
