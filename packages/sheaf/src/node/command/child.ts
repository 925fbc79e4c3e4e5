import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "./options.ts";

/** The end of the socket in the worker. Not stdin or stdout: what it prints must not get in between. */
const descriptor = 3;
/** Where sheaf_worker.py is, seen from `src` and from `dist`. */
const pythonFolder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "python");

export interface CommandChild {
  readonly child: ChildProcess;
  /** Frames go both ways. Undefined where no file handle is left; the child's `error` follows. */
  readonly pipe: Socket | undefined;
  /** Stdout and stderr, where they are. */
  readonly output: readonly Socket[];
  /** Kills the process and all that it has started and not set apart. No effect once it has ended. */
  kill(): void;
}

/** Starts a worker as the worker protocol says: a socket of its own, no stdin, a process group of its own. */
export function startCommand({ command, args, cwd, env }: Command): CommandChild {
  const child = spawn(command, args, {
    cwd,
    env: environmentOf(env),
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    // A group of its own: a kill takes whatever it has started, and a terminal's Ctrl-C does not take it.
    detached: true,
  });
  const [, stdout, stderr, pipe] = (child.stdio as typeof child.stdio | undefined) ?? [];
  let hasExited = false;
  const kill = (): void => {
    if (!hasExited) killGroup(child.pid);
  };
  child.on("exit", () => {
    // What it leaves behind ends with it. Not later: its number may be another's by then.
    kill();
    hasExited = true;
  });
  return { child, pipe: pipe as Socket | undefined, output: [stdout, stderr].filter(Boolean) as Socket[], kill };
}

function environmentOf(changes: Command["env"]): NodeJS.ProcessEnv {
  const inherited: NodeJS.ProcessEnv = { ...process.env, ...changes };
  const path = inherited["PYTHONPATH"];
  return {
    ...Object.fromEntries(Object.entries(inherited).filter(([, value]) => value !== undefined)),
    PYTHONPATH: path === undefined || path === "" ? pythonFolder : `${pythonFolder}${delimiter}${path}`,
    SHEAF_WORKER_FD: String(descriptor),
  };
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}
