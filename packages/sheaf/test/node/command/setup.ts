import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Batcher, BatcherOptions } from "../../../dist/index.js";
import { workerCommand, type CommandExecutor, type CommandOptions } from "../../../dist/node/index.js";
import { openBatcher } from "../probe.js";
import type { WorkerLogLine } from "../../../dist/internal/node.js";

export { skipWithoutPython } from "../../../../../test/support/python.mjs";

/** A worker beside this file's source. */
export const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../../../test/node/command/${name}`, import.meta.url));

export type Item = { readonly do: string } & Readonly<Record<string, unknown>>;

export interface Setup {
  readonly executor: CommandExecutor<Item, unknown>;
  readonly call: Batcher<Item, unknown>;
  readonly lines: WorkerLogLine[];
}

export async function setUp(
  options: Partial<CommandOptions> = {},
  batching: BatcherOptions<Item> = {},
): Promise<Setup> {
  const lines: WorkerLogLine[] = [];
  const executor = workerCommand<Item, unknown>({
    command: "python3",
    args: [pathOf("probe.py")],
    log: (line) => lines.push(line),
    niceness: 0,
    ...options,
  });
  const call = openBatcher(executor, { maxBatchSize: 32, ...batching });
  await call.ready();
  return { executor, call, lines };
}

export const double = (n: number): Item => ({ do: "double", n });

/** Resolves once it holds; rejects where it does not within five minutes. */
export async function until(holds: () => boolean): Promise<void> {
  const endAtMs = performance.now() + 300_000;
  while (!holds()) {
    if (performance.now() > endAtMs) throw new Error(`${holds.toString()} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Whether the process runs. One that has ended and that nobody has asked about yet does not. */
export function isAlive(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.trim().startsWith("Z");
}
