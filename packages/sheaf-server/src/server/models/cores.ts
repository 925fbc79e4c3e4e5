import { ownCores } from "sheaf/internal/node";
import type { Settings } from "../../settings/settings.ts";

/** Threads of one run inside a worker: the workers share the cores, and more threads than cores would only take turns. */
export function threadsPerWorker(
  { workers, workerThreads }: Pick<Settings, "workers" | "workerThreads">,
  cores: number = ownCores(),
): number {
  return workerThreads ?? Math.max(1, Math.floor(cores / workers));
}
