import { within } from "sheaf/internal";
import type { SheafServer } from "../server/server.ts";
import { endSignals } from "./processes/start.ts";
import type { RunCommand } from "./shared/command.ts";

export interface Stoppable extends Pick<SheafServer, "app" | "ready" | "close"> {
  /** Starts to answer, and logs the address. */
  listen(): Promise<void>;
  /** Releases everything at once; resolves when no native code runs. */
  abandon(): Promise<unknown>;
}

/** How long a worker's batch may still run once the process has to end. */
const lastRunMs = 2000;

/**
 * Listens, and drains on SIGTERM, SIGINT, SIGHUP or SIGQUIT; a second signal exits at once with 1.
 * @throws {Error} the reason why a model failed to load, once the server is closed.
 */
export async function serveUntilSignal(server: Stoppable, signals: NodeJS.EventEmitter = process): Promise<number> {
  const { app } = server;
  let signalled = 0;
  const ended = new Promise<number>((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      if (++signalled > 1) return void endNow(server);
      app.log.info({ signal }, "shutting down");
      server.close().then(
        (isComplete) => resolve(isComplete ? 0 : 1),
        (error: unknown) => {
          app.log.error({ err: error }, "shutdown failed");
          resolve(1);
        },
      );
    };
    for (const signal of endSignals) signals.on(signal, stop);
  });
  await server.listen();
  const failed = server.ready().then(
    () => {
      app.log.info("ready");
      return new Promise<number>(() => undefined);
    },
    async (error: unknown) => {
      if (signalled > 0) return new Promise<number>(() => undefined);
      app.log.fatal("a model failed to load; shutting down");
      await server.close({ graceMs: 0 });
      throw error;
    },
  );
  return Promise.race([ended, failed]);
}

/**
 * Exits with 1 as soon as no batch runs in a worker thread, because exiting inside native code aborts the process. If a run does not
 * end in time, the process kills itself.
 */
async function endNow(server: Stoppable): Promise<void> {
  if (await within(server.abandon(), lastRunMs)) process.exit(1);
  process.kill(process.pid, "SIGKILL");
}

/**
 * Gives a command a signal that aborts on the first SIGINT or SIGTERM, so that it can stop the servers that it started; a second one
 * ends the process as usual.
 */
export const interruptible =
  (run: RunCommand): RunCommand =>
  async (words, streams) => {
    const controller = new AbortController();
    const abort = (signal: NodeJS.Signals): void => controller.abort(new Error(signal));
    process.once("SIGINT", abort).once("SIGTERM", abort);
    try {
      return await run(words, { ...streams, signal: controller.signal });
    } finally {
      process.off("SIGINT", abort).off("SIGTERM", abort);
    }
  };
