import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import type { Socket } from "node:net";
import { delimiter, dirname, join } from "node:path";
import type { Command } from "./options.ts";

/** The worker's end of the socket. Not stdin or stdout, so that its output cannot get in between. */
const descriptor = 3;
const pythonFolder = join(dirname(createRequire(import.meta.url).resolve("sheaf/package.json")), "python");

export interface CommandChild {
  readonly child: ChildProcess;
  /** Frames go both ways. Undefined where no file handle is left; the child's `error` follows. */
  readonly pipe: Socket | undefined;
  readonly output: readonly Socket[];
  /** Kills the process and all that it has started and not set apart. No effect once it has ended. */
  kill(): void;
}

/**
 * Starts a worker as the worker protocol says: with its own socket and no stdin. Not detached: Linux schedules sessions separately
 * (autogroups), so on a busy machine each batch would wait for the session's turn. `index` numbers the pool's instances from 0.
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
    // Also ends processes that it leaves behind. At once, because its pid may be reused later.
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

/** False if the worker leads no process group: it has just started, or violates the protocol. */
function killGroup(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(-pid, "SIGKILL");
  } catch {
    return false;
  }
}
