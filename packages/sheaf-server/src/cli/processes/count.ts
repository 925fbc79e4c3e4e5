import { totalmem } from "node:os";
import { ownCores } from "sheaf/internal/node";
import { ConfigError } from "../../settings/config.ts";
import { roleOf } from "../../settings/role.ts";
import type { Settings } from "../../settings/settings.ts";

/** Memory of a front, with room for its requests. */
const frontBytes = 128 * 1024 * 1024;
const mostAutomatic = 8;

/** HTTP_PROCESSES as a number. @throws {ConfigError} in a fleet, whose gateways are such processes. */
export function processesOf(settings: Settings, cores: number = ownCores(), memoryBytes: number = memory()): number {
  const { httpProcesses, inferenceDevice, workers } = settings;
  if (httpProcesses === 1) return 1;
  if (roleOf(settings) !== "alone")
    throw new ConfigError("HTTP_PROCESSES cannot be combined with NATS_URL: start more gateways.");
  if (httpProcesses !== "auto") return httpProcesses;
  const forWorkers = inferenceDevice === "cpu" ? cores / 2 : workers;
  const most = Math.min(mostAutomatic, memoryBytes / 4 / frontBytes);
  return Math.max(1, Math.floor(Math.min(most, (cores - forWorkers) / 2)));
}

/** The limit of the container, or the machine's. */
function memory(): number {
  const limit = process.constrainedMemory?.() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
