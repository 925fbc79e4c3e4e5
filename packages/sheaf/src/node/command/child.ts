import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import type { Socket } from "node:net";
import { delimiter, dirname, join } from "node:path";
import type { Command } from "./options.ts";

/** The end of the socket in the worker. Not stdin or stdout: its output must not get in between. */
const descriptor = 3;
/** Where sheaf_worker.py is. */
const pythonFolder = join(dirname(createRequire(import.meta.url).resolve("sheaf/package.json")), "python");

export interface CommandChild {
  readonly child: ChildProcess;
  /** Frames go both ways. Undefined where no file handle is left; the child's `error` follows. */
  readonly pipe: Socket | undefined;
  /** Stdout and stderr, where they are. */
  readonly output: readonly Socket[];
  /** Kills the process and all that it has started and not set apart. No effect once it has ended. */
  kill(): void;
}

/**
 * Starts a worker as the worker protocol says: a socket of its own, and no stdin. Not detached: a session of its own would be
 * scheduled apart from this one (autogroups of Linux), and on a busy machine each batch would wait for its turn. `index`: which
 * of the pool's instances it is, from 0.
 */
export function startCommand({ command, args, cwd, env }: Command, index: number): CommandChild {
  const child = spawn(command, args, {
    cwd,
    env: environmentOf(env, index),
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const [, stdout, stderr, pipe] = (child.stdio as typeof child.stdio | undefined) ?? [];
  let hasExited = false;
  const kill = (): void => {
    if (!hasExited && !killGroup(child.pid)) child.kill("SIGKILL");
  };
  child.on("exit", () => {
    hasExited = true;
    // Processes that it leaves behind end with it. Not later: its number may be another's by then.
    killGroup(child.pid);
  });
  return { child, pipe: pipe as Socket | undefined, output: [stdout, stderr].filter(Boolean) as Socket[], kill };
}

function environmentOf(changes: Command["env"], index: number): NodeJS.ProcessEnv {
  const inherited: NodeJS.ProcessEnv = { ...process.env, ...changes };
  const path = inherited["PYTHONPATH"];
  return {
    ...Object.fromEntries(Object.entries(inherited).filter(([, value]) => value !== undefined)),
    PYTHONPATH: path === undefined || path === "" ? pythonFolder : `${pythonFolder}${delimiter}${path}`,
    SHEAF_WORKER_FD: String(descriptor),
    SHEAF_WORKER_INDEX: String(index),
  };
}

/** False where the worker leads no group: it has just been started, or it does not keep to the protocol. */
function killGroup(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(-pid, "SIGKILL");
  } catch {
    return false;
  }
}
