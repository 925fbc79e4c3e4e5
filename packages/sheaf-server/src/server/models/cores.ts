import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Settings } from "../../settings/settings.ts";

/** Threads of one run inside a worker: workers share the cores, and more threads than those would only take turns. */
export function threadsPerWorker(
  { workers, workerThreads }: Pick<Settings, "workers" | "workerThreads">,
  cores: number = usableCores(availableParallelism(), cpuMax()),
): number {
  return workerThreads ?? Math.max(1, Math.floor(cores / workers));
}

/** `cpuMax` is cgroup v2's cpu.max, such as "150000 100000" or "max 100000": a container's share of so many cores. */
export function usableCores(cores: number, cpuMax: string | undefined): number {
  const [quota, period] = (cpuMax ?? "").split(/\s+/u).map(Number);
  if (quota === undefined || period === undefined || !(quota > 0 && period > 0)) return cores;
  return Math.min(cores, Math.max(1, Math.ceil(quota / period)));
}

function cpuMax(): string | undefined {
  try {
    return readFileSync("/sys/fs/cgroup/cpu.max", "utf8");
  } catch {
    return undefined;
  }
}
