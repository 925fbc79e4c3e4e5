import { startCommand } from "../command/child.ts";
import type { Declared } from "../command/declared.ts";
import type { CommandSettings, WorkerLogLine } from "../command/options.ts";
import { OutputLines } from "../command/output-lines.ts";
import { CommandProtocol } from "../command/protocol.ts";
import { lowerPriority } from "../worker/priority.ts";
import { holdOver, type WorkerConnection, type WorkerConnectionEvents } from "./connection.ts";

/** How long a worker that has ended its work may take to exit, and its pipes to close once it has. */
const exitMs = 5000;

/** A worker process of any language: frames over a socket of its own, its output in the log. */
export function openCommand(
  settings: CommandSettings,
  declared: Declared,
  events: WorkerConnectionEvents,
  index: number,
): WorkerConnection {
  const { child, pipe, output, kill } = startCommand(settings, index);
  const { pid } = child;
  lowerPriority(pid, settings.niceness);
  const { log: logLine } = settings;
  const log = (level: WorkerLogLine["level"], text: string): void => logLine({ level, text, pid });
  const lines = new OutputLines((text) => log("info", text));
  for (const stream of output) {
    lines.read(stream);
    stream.unref();
  }

  let ended = false;
  let fault: Error | undefined;
  const end = (why: string, error?: Error): void => {
    if (ended) return;
    ended = true;
    events.ended(why, error);
  };
  const protocol = new CommandProtocol(pipe, declared, {
    message(received) {
      lines.forget();
      events.message(received);
    },
    log,
    // What follows can no longer be parsed.
    broken(error) {
      fault ??= error;
      kill();
    },
    closed: () => void setTimeout(kill, exitMs).unref(),
  });

  const whyOf = (code: number | null, signal: string | null): string => {
    const why = signal === null ? `exit code ${code}` : `signal ${signal}`;
    const words = code === 0 ? undefined : lines.lastWords;
    const about = words === undefined ? protocol.silence : `: ${words}`;
    return fault === undefined ? `${why}${about}` : `${fault.message}${words === undefined ? "" : ` (${words})`}`;
  };
  // The cause is for the log of a load that failed; the traceback of a later crash can hold the data of other callers.
  const causeOf = (): Error | undefined => fault ?? (declared.first === undefined ? lines.exception : undefined);
  // By `close` everything that it sent has been read, unless a program that it started holds its pipes open.
  child.on("close", (code, signal) => end(whyOf(code, signal), causeOf()));
  child.on("exit", (code, signal) => {
    // Nothing else may keep this process alive until `close`.
    for (const stream of output) stream.ref();
    const cancel = setTimeout(() => {
      for (const stream of output) stream.destroy();
      end(whyOf(code, signal), causeOf());
    }, exitMs);
    child.on("close", () => clearTimeout(cancel));
  });
  child.on("error", (error) => {
    if (pid === undefined) end(`cannot start ${settings.command}: ${error.message}`, error);
  });

  protocol.hello(settings.data);
  return {
    pid,
    run: (id, attempt, items) => protocol.run(id, attempt, items),
    abort: (id) => protocol.cancel(id),
    close: () => protocol.close(),
    kill() {
      kill();
      return true;
    },
    hold: holdOver(child, pipe),
  };
}
