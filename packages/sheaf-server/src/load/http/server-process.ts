import { spawn, type ChildProcess } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { CommandFailure } from "../../shared/failure.ts";

/** A server of ours in a process of its own, so that it does not share a thread with the load generator. */
export interface ServerProcess {
  readonly origin: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface ServeOptions {
  readonly entry: string;
  /** None where the flags name a config file that lists the models. */
  readonly model?: string | undefined;
  /** Flags of `sheaf serve`: `["--max-batch-size", "1"]`. */
  readonly flags?: readonly string[] | undefined;
  readonly nodeFlags?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

const readyWithinMs = 120_000;
const stopWithinMs = 10_000;
const keptErrorBytes = 8 * 1024;
/**
 * Starts `sheaf serve MODEL` on a free port of loopback and waits until it is ready.
 * @throws {CommandFailure} with the server's own words where it ends or is not ready within two minutes.
 */
export async function serveModel({
  entry,
  model = "",
  flags = [],
  nodeFlags = [],
  signal,
}: ServeOptions): Promise<ServerProcess> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const words = model === "" ? [] : [model];
  const args = [
    ...nodeFlags,
    entry,
    "serve",
    ...words,
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--log-level",
    "error",
    ...flags,
  ];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (output = (output + chunk.toString("utf8")).slice(-keptErrorBytes)));
  }
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });

  try {
    await untilReady(origin, model, child, () => output, signal);
  } catch (error) {
    await stop(child, ended);
    throw error;
  }
  return { origin, pid: child.pid!, stop: () => stop(child, ended) };
}

async function untilReady(
  origin: string,
  model: string,
  child: ChildProcess,
  words: () => string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const giveUpAtMs = performance.now() + readyWithinMs;
  while (performance.now() < giveUpAtMs) {
    signal?.throwIfAborted();
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) {
      const how = child.signalCode ?? `code ${child.exitCode}`;
      throw new CommandFailure(
        `sheaf serve ${model} ended (${how}) before it was ready. Its output:\n${words().trim()}`,
      );
    }
    if (await isReady(origin)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new CommandFailure(
    `sheaf serve ${model} was not ready within ${readyWithinMs / 1000} s. Its output:\n${words().trim()}`,
  );
}

async function isReady(origin: string): Promise<boolean> {
  try {
    const reply = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(2000) });
    await reply.arrayBuffer();
    return reply.ok;
  } catch {
    return false;
  }
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
  await ended;
  clearTimeout(timer);
}

/** A port that was free a moment ago; another process could take it meanwhile, which the server would report. */
async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
