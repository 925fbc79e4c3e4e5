// PostgreSQL as the machine has it, started for a test on a free port in a folder of its own.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const base = "/usr/lib/postgresql";
const bin = newestBin();

/** For `test(name, { skip })`: false where PostgreSQL is, else why not. On CI its absence is a failure. */
export const skipWithoutPostgres = bin !== undefined ? false : absent();

/**
 * Starts a server; `settings` go on its command line. Without them it is quick and not durable: a bench passes
 * `{ fsync: "on" }`. Returns its URL, and ways to make it fail.
 */
export async function startPostgres(settings = {}) {
  if (bin === undefined) throw new Error("PostgreSQL is not installed");
  const owner = ownerOfServer();
  const folder = mkdtempSync(join(tmpdir(), "sheaf-postgres-"));
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
    server = spawn(join(bin, "postgres"), ["-D", data, "-h", "127.0.0.1", "-p", port, "-k", folder, ...words], {
      ...options,
      stdio: ["ignore", "ignore", "pipe"],
    });
    let log = "";
    server.stderr.setEncoding("utf8").on("data", (text) => (log = (log + text).slice(-10_000)));
    for (const deadlineMs = performance.now() + 30_000; ; await sleep(20)) {
      if (log.includes("ready to accept connections") && (await accepts(port))) return;
      if (server.exitCode !== null || performance.now() > deadlineMs)
        throw new Error(`PostgreSQL did not start: ${log}`);
    }
  };
  /** "SIGINT" ends it in order (open connections are cut), "SIGQUIT" as a crash would. */
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

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
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
