// PostgreSQL as the machine has it, started for a test on a free port in a folder of its own.
import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endProcess, freePort, isAlive } from "../../support/serving.mjs";
import { spawnDatabase } from "./database.mjs";
import { absent } from "../../support/absent.mjs";

const base = "/usr/lib/postgresql";
const bin = newestBin();

/** For `test(name, { skip })`: false where PostgreSQL is, else why not. On CI its absence is a failure. */
export const skipWithoutPostgres =
  bin !== undefined ? false : absent(`PostgreSQL is not installed below ${base}; apt-get install postgresql`);

/**
 * Starts a server; `settings` go on its command line. Without them it is quick and not durable: a bench passes
 * `{ fsync: "on" }`. Its data are below `parent`. Returns its URL, and ways to make it fail.
 */
export async function startPostgres(settings = {}, parent = tmpdir()) {
  if (bin === undefined) throw new Error("PostgreSQL is not installed");
  const owner = ownerOfServer();
  const folder = mkdtempSync(join(parent, "sheaf-postgres-"));
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const data = join(folder, "data");
  const options = { ...owner, cwd: folder, stdio: "ignore" };
  execFileSync(join(bin, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"], options);

  const port = await freePort();
  const all = { fsync: "off", shared_buffers: "64MB", max_connections: "40", ...settings };
  const words = ["-D", data, "-h", "127.0.0.1", "-p", port, "-k", folder];
  for (const [name, value] of Object.entries(all)) words.push("-c", `${name}=${value}`);
  let server;
  // Also where the test process ends without having closed it.
  process.once("exit", () => server?.kill("SIGQUIT"));
  const start = async () => {
    for (const deadlineMs = performance.now() + 120_000; !isAlive(server); await sleep(50)) {
      const { child, log } = await spawnDatabase(join(bin, "postgres"), words, port, options);
      server = child;
      // After a kill -9 its children hold the memory that they shared until they have noticed.
      if (!isAlive(child) && (!log.includes("still in use") || performance.now() > deadlineMs))
        throw new Error(`PostgreSQL did not start: ${log}`);
    }
  };
  /** "SIGINT" ends it in order (open connections are cut), "SIGQUIT" as a crash would, "SIGKILL" is one. */
  const stop = (signal = "SIGINT") => endProcess(server, signal);
  await start();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    get pid() {
      return server.pid;
    },
    start,
    stop,
    async close() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function newestBin() {
  if (!existsSync(base)) return undefined;
  const versions = readdirSync(base).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(base, version, "bin")).find((folder) => existsSync(join(folder, "postgres")));
}

/** PostgreSQL refuses to run as root: then it runs as the user that its package made. */
function ownerOfServer() {
  if (process.getuid() !== 0) return {};
  const idOf = (flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}
