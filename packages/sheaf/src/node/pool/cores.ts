import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { performance, type EventLoopUtilization } from "node:perf_hooks";

/**
 * The cores that this process may use. Containers and systemd units have CPU quotas: cgroup v2's cpu.max ("150000 100000" means one
 * and a half cores), or v1's two files. A parent's quota applies too.
 * @param root Where `/proc` and `/sys` are.
 */
export function ownCores(cores: number = availableParallelism(), root: string = "/"): number {
  let quota = Infinity;
  for (const line of readAll(root, "proc/self/cgroup").split("\n")) {
    const [, controllers = "none", path = "/"] = /^\d+:([^:]*):(.*)$/u.exec(line) ?? [];
    const isFirst = controllers.split(",").includes("cpu");
    if (!isFirst && controllers !== "") continue;
    // A container sees its own cgroup at the root, whatever its path is on the host.
    for (let at = join("/", path), isRoot = false; !isRoot; at = dirname(at)) {
      isRoot = at === "/";
      const read = (file: string): string => readAll(root, "sys/fs/cgroup", isFirst ? "cpu" : "", at, file);
      const text = isFirst ? `${read("cpu.cfs_quota_us")} ${read("cpu.cfs_period_us")}` : read("cpu.max");
      const [most = 0, periodUs = 0] = text.trim().split(/\s+/u).map(Number);
      if (most > 0 && periodUs > 0) quota = Math.min(quota, most / periodUs);
    }
  }
  return Math.min(cores, Math.max(1, Math.ceil(quota)));
}

/** Empty if there is no such file, as on systems other than Linux. */
function readAll(...path: readonly string[]): string {
  try {
    return readFileSync(join(...path), "utf8");
  } catch {
    return "";
  }
}

/** Often enough to follow a burst; a look takes microseconds. */
const lookEveryMs = 50;
/** Over about the last four looks. */
const lookGain = 0.3;

/** How short of cores a process is, 0 … 1, by what it used lately. */
export class ShortageGauge {
  shortage = 0;
  readonly #cores: number;
  #usedCores = 0;
  #loopBusy = 0;

  constructor(cores: number) {
    this.#cores = cores;
  }

  /** @param loopBusy the share of time in which the event loop was busy */
  look(usedCores: number, loopBusy: number): void {
    this.#usedCores += lookGain * (usedCores - this.#usedCores);
    this.#loopBusy += lookGain * (loopBusy - this.#loopBusy);
    this.shortage = shortageOf(this.#cores, this.#usedCores, this.#loopBusy);
  }
}

/**
 * 0 while at most a fifth of the cores is in use or 1.6 are idle: one for the other of the two threads that answer and run, the rest
 * for the system and neighbours. 1 from two fifths in use with 1.2 idle, or if the event loop is busy for nine tenths of the time.
 */
export function shortageOf(cores: number, usedCores: number, loopBusy: number): number {
  const inUse = between(0.2, 0.4, usedCores / cores);
  const notIdle = between(-1.6, -1.2, usedCores - cores);
  return Math.max(Math.min(inUse, notIdle), between(0.6, 0.9, loopBusy));
}

/** 0 up to `low`, 1 from `high` on, straight in between. */
const between = (low: number, high: number, value: number): number =>
  Math.min(1, Math.max(0, (value - low) / (high - low)));

const gauge = new ShortageGauge(ownCores());
let lookedAtMs = performance.now();
let usage = process.cpuUsage();
let loop: EventLoopUtilization = performance.eventLoopUtilization();

/**
 * How short of cores this process is, 0 … 1, the same for all of its pools. Based on its own use, not on the machine's load, which in
 * a container includes the neighbours and ignores the quota.
 */
export function coreShortage(): number {
  const nowMs = performance.now();
  const elapsedMs = nowMs - lookedAtMs;
  if (elapsedMs < lookEveryMs) return gauge.shortage;
  const [usageBefore, loopBefore] = [usage, loop];
  lookedAtMs = nowMs;
  usage = process.cpuUsage();
  loop = performance.eventLoopUtilization();
  const usedUs = usage.user + usage.system - usageBefore.user - usageBefore.system;
  gauge.look(usedUs / (1000 * elapsedMs), performance.eventLoopUtilization(loop, loopBefore).utilization);
  return gauge.shortage;
}
