import { readFileSync } from "node:fs";

/** CPU time of any process in milliseconds, from /proc (ticks of 10 ms). */
export const cpuMsOf = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

/** What the hypervisor has kept from this machine since it started, all cores together, in seconds. */
export const stealSeconds = () => Number(readFileSync("/proc/stat", "utf8").split("\n")[0].split(/\s+/)[8]) / 100;
