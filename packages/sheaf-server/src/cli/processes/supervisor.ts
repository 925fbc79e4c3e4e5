import { fork, type ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { within } from "sheaf/internal";
import { logDestination } from "../../observe/log-destination.ts";
import { ConfigError } from "../../settings/config.ts";
import type { Settings } from "../../settings/settings.ts";
import type { ServedEntries } from "../serve.ts";
import { endSignals, type News, type Start, type Stop } from "./start.ts";

const firstPauseMs = 100;
const longestPauseMs = 10_000;
/** A process that has run this long starts again without a pause. */
const steadyMs = 10_000;
/** How long processes may take to end once their grace period is over. */
const lastMs = 5000;

/** What a request leaves behind dies with it: a young generation that fits the core's cache costs fronts less time and memory. */
const smallHeap = ["--max-semi-space-size=2"];

const fileOf = (name: string): string => fileURLToPath(new URL(`../${name}-main${extension}`, import.meta.url));
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";

/**
 * Starts the hub and the fronts, starts those again that end, and ends all of them on a signal. This process owns the port and does
 * nothing else, so that the port outlives each of them. @returns the exit code.
 */
export async function superviseProcesses(
  served: ServedEntries,
  names: readonly string[],
  settings: Settings,
): Promise<number> {
  const log = pino({ level: settings.logLevel }, logDestination());
  const folder = folderOfSockets();
  const pathOf = (name: string): string =>
    process.platform === "win32" ? `\\\\.\\pipe\\${folder.replaceAll(/\W/g, "-")}-${name}` : join(folder, name);
  const start = { served, names, settings, hubPath: pathOf("hub"), httpPath: pathOf("http") };
  cluster.setupPrimary({ exec: fileOf("front"), args: [], execArgv: [...process.execArgv, ...smallHeap], serialization: "advanced" }); // prettier-ignore

  const kept = new Map<string, ChildProcess>();
  let isEnding = false;
  let ended!: (code: number) => void;
  const end = new Promise<number>((resolve) => (ended = resolve));
  /** Whether the server has been ready: before, a process that ends by itself has said why, and would do so again. */
  let hasServed = false;

  const keep = (
    name: string,
    begin: () => ChildProcess,
    startOf: (starts: number) => Start,
    pauseMs = 0,
    starts = 0,
  ): void => {
    const child = begin();
    const startedAtMs = performance.now();
    kept.set(name, child);
    child.on("message", ({ isAsking, isServing }: News) => {
      if (isAsking) child.send(startOf(starts), () => undefined);
      if (isServing) hasServed = true;
    });
    child.on("error", () => undefined);
    child.once("exit", (code, signal) => {
      kept.delete(name);
      if (isEnding) return;
      if (!hasServed && code !== null) return ended(code || 1);
      const wasSteady = performance.now() - startedAtMs >= steadyMs;
      const nextMs = wasSteady ? firstPauseMs : Math.min(longestPauseMs, Math.max(firstPauseMs, 2 * pauseMs));
      log.error({ process: name, code, signal, restartInMs: nextMs }, `${name} has ended; it is started again`);
      setTimeout(() => isEnding || keep(name, begin, startOf, nextMs, starts + 1), nextMs).unref();
    });
  };

  keep("hub", () => forkHub(), () => ({ ...start, number: 0, isFirst: false })); // prettier-ignore
  for (let number = 1; number <= Number(settings.httpProcesses); number++)
    keep(`front ${number}`, () => forkFront(), (starts) => ({ ...start, number, isFirst: number === 1 && starts === 0 })); // prettier-ignore

  let signals = 0;
  for (const signal of endSignals)
    process.on(signal, () => {
      signals++;
      if (signals === 1) void stopAll(signal).then(ended);
      else ended(1);
    });

  /** Fronts first: their clients' requests still need the hub. */
  async function stopAll(signal: NodeJS.Signals): Promise<number> {
    isEnding = true;
    const endAtMs = performance.now() + settings.shutdownGraceMs;
    const [hub, ...fronts] = ["hub", ...[...kept.keys()].filter((name) => name !== "hub")].map((name) =>
      kept.get(name),
    );
    const codes = await Promise.all(fronts.map((front) => stop(front, signal, endAtMs)));
    return Math.max(...codes, await stop(hub, signal, endAtMs));
  }

  const code = await end;
  isEnding = true;
  for (const child of kept.values()) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
  return code;
}

function folderOfSockets(): string {
  try {
    return mkdtempSync(join(tmpdir(), "sheaf-"));
  } catch (error) {
    const why = (error as Error).message;
    throw new ConfigError(`HTTP_PROCESSES needs a temporary folder that can be written (TMPDIR): ${why}`);
  }
}

/** Cluster forgets a connection that it was handing over when the process ends, and its client would wait forever. */
function forkFront(): ChildProcess {
  const child = cluster.fork().process;
  const handedOver = new Map<number, { close(): void }>();
  const send = child.send.bind(child) as (message: unknown, handle?: unknown, ...rest: unknown[]) => boolean;
  child.send = (message: Readonly<Record<string, unknown>>, handle?: unknown, ...rest: unknown[]) => {
    if (message["act"] === "newconn") handedOver.set(message["seq"] as number, handle as { close(): void });
    return send(message, handle, ...rest);
  };
  child.on("internalMessage", ({ ack }: { readonly ack?: number }) => handedOver.delete(ack!));
  child.once("exit", () => {
    for (const connection of handedOver.values()) connection.close();
  });
  return child;
}

function forkHub(): ChildProcess {
  return fork(fileOf("hub"), [], { serialization: "advanced" });
}

/** Lets a process end. @returns its exit code, 1 where it had to be killed or is gone. */
async function stop(child: ChildProcess | undefined, signal: NodeJS.Signals, endAtMs: number): Promise<number> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return 1;
  const exit = once(child, "exit");
  const graceMs = Math.max(0, endAtMs - performance.now());
  child.send({ stop: signal, graceMs } satisfies Stop, () => undefined);
  await within(exit, graceMs + lastMs);
  return child.exitCode ?? 1;
}
