// PostgreSQL as the machine has it, started for a test on a free port in a folder of its own.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../support/serving.mjs";

const base = "/usr/lib/postgresql";
const bin = newestBin();

/** For `test(name, { skip })`: false where PostgreSQL is, else why not. On CI its absence is a failure. */
export const skipWithoutPostgres = bin !== undefined ? false : absent();

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
  const words = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  let server;
  // Also where the test process ends without having closed it.
  process.once("exit", () => server?.kill("SIGQUIT"));
  const start = async () => {
    if (server?.exitCode === null && server.signalCode === null) return;
    for (const deadlineMs = performance.now() + 120_000; ; await sleep(50)) {
      const { child, log } = await spawnServer(deadlineMs);
      server = child;
      if (child.exitCode === null && child.signalCode === null) return;
      // After a kill -9 its children hold the memory that they shared until they have noticed.
      if (!log.includes("still in use") || performance.now() > deadlineMs) {
        throw new Error(`PostgreSQL did not start: ${log}`);
      }
    }
  };
  /** Resolves once it takes connections, or has ended. */
  const spawnServer = async (deadlineMs) => {
    const child = spawn(join(bin, "postgres"), ["-D", data, "-h", "127.0.0.1", "-p", port, "-k", folder, ...words], {
      ...options,
      stdio: ["ignore", "ignore", "pipe"],
    });
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text) => (log = (log + text).slice(-10_000)));
    for (; ; await sleep(20)) {
      if (child.exitCode !== null || child.signalCode !== null) return { child, log };
      if (log.includes("ready to accept connections") && (await accepts(port))) return { child, log };
      if (performance.now() > deadlineMs) {
        child.kill("SIGQUIT");
        throw new Error(`PostgreSQL did not start in time: ${log}`);
      }
    }
  };
  /** "SIGINT" ends it in order (open connections are cut), "SIGQUIT" as a crash would, "SIGKILL" is one. */
  const stop = async (signal = "SIGINT") => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill(signal);
    await ended;
  };
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

function absent() {
  const message = `PostgreSQL is not installed below ${base}; apt-get install postgresql`;
  if (process.env.CI === "true") throw new Error(message);
  console.error(`SKIPPED: ${message}`);
  return message;
}

/** PostgreSQL refuses to run as root: then it runs as the user that its package made. */
function ownerOfServer() {
  if (process.getuid() !== 0) return {};
  const idOf = (flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
}
