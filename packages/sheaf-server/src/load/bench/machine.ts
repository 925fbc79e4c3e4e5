import { cpus, totalmem } from "node:os";

/** One line for every published figure: where it was measured. */
export function machine(): string {
  const processors = cpus();
  const memoryGib = Math.round(totalmem() / 2 ** 30);
  const model = processors[0]?.model.trim() ?? "unknown CPU";
  return `Node ${process.version}, ${process.platform} ${process.arch}, ${processors.length} × ${model}, ${memoryGib} GiB`;
}
