// What a server costs the machine, whatever processes it is made of. Linux only: all of it stands in /proc.
import { readdirSync, readFileSync } from "node:fs";

/** Name of the environment variable that every process of a server inherits, daemons too. */
export const marker = "SHEAF_BENCH_SERVER";

const ticksPerS = 100;

/** Processes that carry this value of the marker. */
export function marked(value) {
  const wanted = `${marker}=${value}`;
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    return (read(`/proc/${pid}/environ`) ?? "").split("\0").includes(wanted);
  });
}

/** User and system seconds of these processes, with the children that they have seen end. */
export function cpuSeconds(pids) {
  let ticks = 0;
  for (const pid of pids) {
    const stat = read(`/proc/${pid}/stat`);
    if (stat === undefined) continue;
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    for (const field of [11, 12, 13, 14]) ticks += Number(fields[field]);
  }
  return ticks / ticksPerS;
}

/** Proportional set size: what is shared counts once in all. */
export function pssMib(pids) {
  let kib = 0;
  for (const pid of pids) kib += Number(/^Pss:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/smaps_rollup`) ?? "")?.[1] ?? 0);
  return kib / 1024;
}

/** Seconds that all cores together were busy since the machine started. */
export function machineBusySeconds() {
  const [user, nice, system, , , irq, softirq] = readFileSync("/proc/stat", "utf8")
    .split(/\s+/)
    .slice(1, 9)
    .map(Number);
  return (user + nice + system + irq + softirq) / ticksPerS;
}

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // It has ended, or was never ours to read.
  }
}
