// A real nats-server for tests, proofs and benches: on free ports of the loopback, with a store of its own. As a program it
// installs the pinned version, in a virtual environment of Python: Debian's is too old, and so is its Go.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { endProcess, freePort } from "./serving.mjs";

export { freePort };

const startMs = 120_000;
const requirements = fileURLToPath(new URL("nats-server.txt", import.meta.url));
/** Ignored by git. */
const venv = fileURLToPath(new URL("../.venv", import.meta.url));
const installed = `${venv}/bin/nats-server`;
/**
 * The pinned server where it is installed, else the one of the PATH. Another version:
 * `NATS_SERVER=/path/to/nats-server npm test -- nats`.
 */
export const command = process.env.NATS_SERVER ?? (existsSync(installed) ? installed : "nats-server");
/** Each queue reserves 1 GiB. Without this a server gives out no more than three quarters of the free disk. */
const storage = "jetstream { max_file_store: 1000GB, max_memory_store: 1000GB }\n";

/** A fleet needs 2.10 or newer. */
const oldestMinor = 10;

/** Why no nats-server can be started here, or undefined. Where CI=true that is an error. */
export function whyNoNats() {
  const { status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
  const [, minor] = /v2\.(\d+)\./.exec(stdout ?? "") ?? [];
  if (status === 0 && Number(minor) >= oldestMinor) return undefined;
  const found = status === 0 ? `${command} is too old (${stdout.trim()})` : "nats-server is not installed";
  const why = `${found}; node test/support/nats-server.mjs installs it: nothing here is tested`;
  if (process.env.CI === "true") throw new Error(why);
  console.error(why);
  return why;
}

/**
 * Starts a server; `restart()` ends it with SIGKILL or a milder signal, and brings it back on the same ports with what it
 * had stored. How much its queues may reserve does not depend on the machine's disk and memory.
 * @param {readonly string[]} more arguments of nats-server; `-c` or `-js=false` replaces its settings of JetStream
 */
export async function startNats(more = []) {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-nats-"));
  let child = await spawnIn(folder, await freePort(), more);
  // Also where the process ends without having stopped it.
  process.once("exit", () => child.process.kill("SIGKILL"));
  const { nats } = child.ports;
  const url = nats[0].replace("nats://", "");
  const end = (signal) => endProcess(child.process, signal);
  return {
    url,
    /** Another one after a restart. */
    get monitorUrl() {
      return child.ports.monitoring?.[0];
    },
    get pid() {
      return child.process.pid;
    },
    pause: () => void child.process.kill("SIGSTOP"),
    resume: () => void child.process.kill("SIGCONT"),
    kill: () => end("SIGKILL"),
    restart: async (signal = "SIGKILL") => {
      await end(signal);
      child = await spawnIn(folder, Number(url.split(":").at(-1)), more);
    },
    stop: async () => {
      child.process.kill("SIGCONT");
      await end("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function spawnIn(folder, port, more) {
  for (const file of portFiles(folder)) rmSync(file);
  const store = ["-js", "-sd", join(folder, "store"), "--ports_file_dir", folder];
  if (!more.includes("-c") && !more.includes("-js=false")) {
    writeFileSync(join(folder, "nats.conf"), storage);
    store.push("-c", join(folder, "nats.conf"));
  }
  const log = join(folder, "log");
  const process_ = spawn(command, ["-a", "127.0.0.1", "-p", port, "-m", "-1", "-l", log, ...store, ...more], {
    stdio: "ignore",
  });
  const untilMs = Date.now() + startMs;
  while (Date.now() < untilMs && process_.exitCode === null) {
    const ports = portsOf(folder);
    if (ports !== undefined) return { process: process_, ports };
    await sleep(20);
  }
  process_.kill("SIGKILL");
  const said = existsSync(log) ? readFileSync(log, "utf8") : "";
  throw new Error(`nats-server did not start within ${startMs} ms.\n${said}`);
}

const portFiles = (folder) =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".ports"))
    .map((file) => join(folder, file));

function portsOf(folder) {
  try {
    const ports = JSON.parse(readFileSync(portFiles(folder)[0], "utf8"));
    return ports.nats?.length > 0 ? ports : undefined;
  } catch {
    return undefined; // not written yet, or half of it
  }
}

/** Again only where another version is pinned: pip itself looks. */
function install() {
  if (!existsSync(`${venv}/bin/pip`)) execFileSync("python3", ["-m", "venv", venv], { stdio: "inherit" });
  const words = [
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--require-hashes",
    "--no-deps",
    "-r",
    requirements,
  ];
  execFileSync(`${venv}/bin/pip`, words, { stdio: "inherit" });
  console.log(execFileSync(installed, ["--version"], { encoding: "utf8" }).trim());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) install();
