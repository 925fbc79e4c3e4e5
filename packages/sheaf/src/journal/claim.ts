import { mkdir, readFile, rename, rm, utimes, stat, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface FolderClaim {
  /** Gives the folder back. */
  release(): Promise<void>;
}

interface Owner {
  readonly pid: number;
  readonly host: string;
  /** Tells it from a later process with the same pid; empty where the system does not say. */
  readonly startedAt: string;
  readonly since: string;
}

const touchEveryMs = 1000;
/** An owner on another machine that touches nothing for this long is gone. */
const silentMs = 5000;

/**
 * Makes this process the only owner of a folder, which is made with mode 0700 if it is missing. The claim of a process that
 * is gone is taken over.
 * @throws {Error} naming the process that owns it.
 */
export async function claimFolder(folder: string): Promise<FolderClaim> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, "owner.json");
  const own = { pid: process.pid, host: hostname(), startedAt: startOf(process.pid), since: new Date().toISOString() };
  const text = JSON.stringify(own);
  while (!(await isWritten(path, text))) {
    const before = await readFile(path, "utf8").catch(() => "");
    const owner = ownerIn(before);
    if (owner !== undefined && (await isAlive(owner, own.host, path))) {
      const isOwn = owner.pid === own.pid && owner.host === own.host;
      throw new Error(
        `${folder} belongs to process ${owner.pid} on ${owner.host} since ${owner.since}. ` +
          (isOwn
            ? "This process uses it for something else: choose another folder."
            : "Stop that process, or choose another folder."),
      );
    }
    await removeStale(path, before);
  }
  const timer = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, touchEveryMs).unref();
  return {
    async release() {
      clearInterval(timer);
      if ((await readFile(path, "utf8").catch(() => "")) === text) await rm(path, { force: true });
    },
  };
}

async function isWritten(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Another process may have taken over in between: its claim goes back. */
async function removeStale(path: string, before: string): Promise<void> {
  const aside = `${path}.${process.pid}`;
  try {
    await rename(path, aside);
  } catch {
    return;
  }
  const taken = await readFile(aside, "utf8");
  await rm(aside);
  if (taken !== before) await isWritten(path, taken);
}

/** Undefined for a file whose process was killed while it wrote. */
function ownerIn(text: string): Owner | undefined {
  try {
    return JSON.parse(text) as Owner;
  } catch {
    return undefined;
  }
}

async function isAlive({ pid, host, startedAt }: Owner, ownHost: string, path: string): Promise<boolean> {
  if (host === ownHost) {
    // A container's first process has the pid of the one before.
    return isRunning(pid) && startOf(pid) === startedAt && (startedAt !== "" || pid !== process.pid);
  }
  const before = await touchedAtMs(path);
  await sleep(silentMs);
  return (await touchedAtMs(path)) !== before;
}

const touchedAtMs = (path: string): Promise<number> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Clock ticks from the machine's start to the process's, with the machine's start itself. */
function startOf(pid: number): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${boot} ${fields.slice(fields.lastIndexOf(")") + 2).split(" ")[19]}`;
  } catch {
    return "";
  }
}
