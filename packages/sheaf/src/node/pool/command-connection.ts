import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { getPriority, setPriority } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Declared } from "../command/declared.ts";
import { OutputLines } from "../command/output-lines.ts";
import { CommandProtocol } from "../command/protocol.ts";
import type { CommandSettings } from "../command/options.ts";
import type { WorkerConnection, WorkerConnectionEvents } from "./connection.ts";

/** The end of the pipe in the worker. Not stdin or stdout: what it prints must not get in between. */
const descriptor = 3;
/** Where sheaf_worker.py is, seen from `src` and from `dist`. */
const pythonFolder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "python");
const lowestPriority = 19;
/** How long a worker that has ended its work may take to exit, and its pipes to close once it has. */
const exitMs = 5000;

/** A worker process of any language: frames over a socket of its own, its output in the log, and a process group of its own. */
export function openCommand(
  settings: CommandSettings,
  declared: Declared,
  events: WorkerConnectionEvents,
): WorkerConnection {
  const child = spawn(settings.command, settings.args, {
    cwd: settings.cwd,
    env: environmentOf(settings.env),
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    // A group of its own: a kill takes whatever it has started, and a terminal's Ctrl-C does not take it.
    detached: true,
  });
  const { pid } = child;
  lowerPriority(pid, settings.niceness);
  // Without a free file handle there are no pipes at all; `error` follows.
  const pipe = (child.stdio as typeof child.stdio | undefined)?.[descriptor] as Socket | undefined;
  const log = (level: "debug" | "info" | "warning" | "error", text: string): void => settings.log({ level, text, pid });
  const output = new OutputLines((text) => log("info", text));
  for (const stream of [child.stdout, child.stderr] as (Socket | null)[]) {
    if (stream === null) continue;
    output.read(stream);
    stream.unref();
  }
  const kill = (): boolean => {
    killGroup(child);
    return true;
  };

  let ended = false;
  let fault: Error | undefined;
  const end = (why: string, error?: Error): void => {
    if (ended) return;
    ended = true;
    events.ended(why, error);
  };
  const protocol = new CommandProtocol(pipe, declared, {
    message(received) {
      output.forget();
      events.message(received);
    },
    log,
    // Nothing that follows can be told apart.
    broken(error) {
      fault ??= error;
      kill();
    },
    closed: () => void setTimeout(kill, exitMs).unref(),
  });

  const whyOf = (code: number | null, signal: string | null): string => {
    const why = signal === null ? `exit code ${code}` : `signal ${signal}`;
    const words = code === 0 ? undefined : output.lastWords;
    const about = words === undefined ? protocol.silence : `: ${words}`;
    return fault === undefined ? `${why}${about}` : `${fault.message}${words === undefined ? "" : ` (${words})`}`;
  };
  // By `close` everything that it sent has been read, unless a program that it started holds its pipes open.
  child.on("close", (code, signal) => end(whyOf(code, signal), fault));
  child.on("exit", (code, signal) => {
    killGroup(child);
    setTimeout(() => end(whyOf(code, signal), fault), exitMs).unref();
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
    kill,
    hold(alive) {
      if (alive) {
        child.ref();
        pipe?.ref();
      } else {
        child.unref();
        pipe?.unref();
      }
    },
  };
}

function environmentOf(changes: CommandSettings["env"]): NodeJS.ProcessEnv {
  const inherited: NodeJS.ProcessEnv = { ...process.env, ...changes };
  const path = inherited["PYTHONPATH"];
  return {
    ...Object.fromEntries(Object.entries(inherited).filter(([, value]) => value !== undefined)),
    PYTHONPATH: path === undefined || path === "" ? pythonFolder : `${pythonFolder}${delimiter}${path}`,
    SHEAF_WORKER_FD: String(descriptor),
  };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}

function lowerPriority(pid: number | undefined, niceness: number): void {
  if (pid === undefined || niceness === 0) return;
  try {
    setPriority(pid, Math.min(lowestPriority, getPriority() + niceness));
  } catch {
    // Not permitted in some sandboxes, or it has ended already.
  }
}
