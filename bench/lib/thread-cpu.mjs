import { readdirSync, readFileSync } from "node:fs";

/** CPU milliseconds of each thread of a process so far; Linux only. The thread with the process's id is the HTTP thread. */
export function cpuByThread(pid) {
  const used = new Map();
  for (const tid of readdirSync(`/proc/${pid}/task`)) {
    const [ranNs] = readFileSync(`/proc/${pid}/task/${tid}/schedstat`, "utf8").split(" ");
    used.set(Number(tid) === pid ? "HTTP thread" : `thread ${tid}`, Number(ranNs) / 1e6);
  }
  return used;
}

/** Adds what each thread used since `before` to an account. */
export function addCpu(account, pid, before) {
  for (const [thread, ms] of cpuByThread(pid))
    account.set(thread, (account.get(thread) ?? 0) + ms - (before.get(thread) ?? 0));
}

/** One line: microseconds an item of each thread that used half of one or more, the busiest first. */
export function cpuPerItem(account, items) {
  return Array.from(account, ([thread, ms]) => [thread, (ms * 1000) / items])
    .filter(([, us]) => us >= 0.5)
    .toSorted((a, b) => b[1] - a[1])
    .map(([thread, us]) => `${thread} ${us.toFixed(1)}`)
    .join(", ");
}
