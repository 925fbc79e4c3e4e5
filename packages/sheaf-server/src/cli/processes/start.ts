import { EventEmitter, once } from "node:events";
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import type { ServedEntries } from "../serve.ts";
import type { Settings } from "../../settings/settings.ts";

/** Closing the terminal (SIGHUP) or quitting it (SIGQUIT) cuts off no request. */
export const endSignals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const;

/** What a process begins with. */
export interface Start {
  readonly served: ServedEntries;
  /** Of the models that the command line names. */
  readonly names: readonly string[];
  readonly settings: Settings;
  readonly hubPath: string;
  readonly httpPath: string;
  /** The number of a front. */
  readonly number: number;
  readonly isFirst: boolean;
}

/** The first process got a signal to end. */
export interface Stop {
  readonly stop: NodeJS.Signals;
  readonly graceMs: number;
}

/** What a process tells the first one. */
export interface News {
  /** It waits for its start. */
  readonly isAsking?: true;
  /** The hub: models are ready, and fronts take requests for them. */
  readonly isServing?: true;
}

/** What the first process tells this one. */
export interface Orders {
  readonly start: Start;
  readonly signals: EventEmitter;
  readonly graceMs: () => number;
}

/**
 * Waits for the first process' message. Signals come from it alone: those of a terminal or a service manager reach all processes at
 * once, and the hub must outlive the fronts. Ends with the first process, however that ends.
 */
export async function ordersOf(): Promise<Orders> {
  const signals = new EventEmitter();
  let graceMs = 0;
  for (const signal of endSignals) process.on(signal, () => undefined);
  const told = once(process, "message") as Promise<[Start]>;
  // Asked for, because cluster drops what comes before somebody listens.
  process.send?.({ isAsking: true } satisfies News);
  const [start] = await told;
  process.on("disconnect", () => {
    rmSync(dirname(start.hubPath), { recursive: true, force: true });
    // At once: a worker that hangs must not keep the process.
    process.kill(process.pid, "SIGKILL");
  });
  process.on("message", (message: Stop) => {
    graceMs = message.graceMs;
    // It is still starting.
    if (!signals.emit(message.stop, message.stop)) process.exit(1);
  });
  return { start, signals, graceMs: () => graceMs };
}
