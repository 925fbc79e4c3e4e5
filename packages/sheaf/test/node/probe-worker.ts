import { appendFileSync, existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { defineWorker } from "../../dist/node/index.js";

/** What the probe does with an item. */
export type Command =
  | { do: "double"; n: number; key?: string }
  | { do: "thread" }
  | { do: "loads" }
  | { do: "throw"; message: string }
  | { do: "wait"; ms: number }
  | { do: "spin"; ms: number }
  | { do: "block"; until: string; key?: string }
  | { do: "exit"; afterMs?: number; ifFirst?: true }
  | { do: "exit-later"; ms: number }
  | { do: "uncaught" }
  | { do: "fill-heap" }
  | { do: "abort-process" }
  | { do: "segfault" }
  | { do: "niceness" }
  | { do: "attempt" }
  | { do: "text"; length: number }
  | { do: "short" };

export interface ProbeData {
  readonly failWith?: string;
  readonly offset?: number;
  /** Loads native code. */
  readonly isNative?: boolean;
  /** How long `load` takes. */
  readonly loadMs?: number;
  /** Which load, counted over all instances in a file, takes so long. */
  readonly slowLoad?: { readonly file: string; readonly load: number; readonly ms: number };
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let loads = 0;

export default defineWorker({
  load: async (data: ProbeData | undefined) => {
    loads++;
    if (data?.loadMs !== undefined) await sleep(data.loadMs);
    if (data?.slowLoad !== undefined) {
      const { file, load, ms } = data.slowLoad;
      appendFileSync(file, "|");
      if (statSync(file).size === load) await sleep(ms);
    }
    if (data?.isNative === true) createRequire(import.meta.url)("onnxruntime-node");
    if (data?.failWith !== undefined) throw new RangeError(data.failWith);
    return { offset: data?.offset ?? 0, warm: false };
  },
  warmUp(model) {
    model.warm = true;
  },
  async run(items: Command[], model, context): Promise<(number | string | Error)[]> {
    if (!model.warm) throw new Error("not warm");
    const results: (number | string | Error)[] = [];
    for (const item of items) results.push(await obey(item, model.offset, context));
    return items.some((item) => item.do === "short") ? results.slice(1) : results;
  },
});

async function obey(
  item: Command,
  offset: number,
  context: { signal: AbortSignal; attempt: number },
): Promise<number | string | Error> {
  switch (item.do) {
    case "double":
      return item.n * 2 + offset;
    case "thread":
      return `${process.pid}/${(await import("node:worker_threads")).threadId}`;
    case "loads":
      return loads;
    case "throw":
      throw Object.assign(new RangeError(item.message), { status: 418 });
    case "wait":
      await sleep(item.ms);
      return "waited";
    case "spin": {
      const endAt = performance.now() + item.ms;
      while (performance.now() < endAt);
      return "spun";
    }
    case "block": {
      // Nothing else runs here until that file is there.
      const cell = new Int32Array(new SharedArrayBuffer(4));
      while (!existsSync(item.until)) Atomics.wait(cell, 0, 0, 5);
      return "unblocked";
    }
    case "exit":
      if (item.ifFirst && context.attempt > 1) return "survived";
      if (item.afterMs !== undefined) await sleep(item.afterMs);
      return process.exit(1);
    case "exit-later":
      // The second time, in quarantine, it never ends.
      if (context.attempt > 1) await new Promise(() => setInterval(() => undefined, 1000));
      await sleep(item.ms);
      return process.exit(1);
    case "text":
      return "x".repeat(item.length);
    case "short":
      return "short";
    case "uncaught":
      setImmediate(() => {
        throw new Error("nobody catches this");
      });
      await new Promise(() => undefined);
      return "";
    case "fill-heap": {
      const hoard: unknown[] = [];
      for (;;) hoard.push(new Array(10_000).fill(hoard.length));
    }
    case "abort-process":
      return process.abort();
    case "segfault":
      process.kill(process.pid, "SIGSEGV");
      await new Promise(() => undefined);
      return "";
    case "niceness":
      return (await import("node:os")).getPriority();
    case "attempt":
      return context.attempt;
  }
}
