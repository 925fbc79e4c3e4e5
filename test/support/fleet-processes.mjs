// A fleet as its users run it: a nats-server, and gateways and workers that are processes of the sheaf command.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { startNatsCluster } from "./nats-cluster.mjs";
import { startNats } from "./nats-server.mjs";
import { freePort } from "./serving.mjs";
import { startCuttable } from "./cuttable-proxy.mjs";

const command = fileURLToPath(new URL("../../packages/sheaf-server/bin/sheaf.js", import.meta.url));
const ownModel = fileURLToPath(new URL("fleet-worker.mjs", import.meta.url));
const readyWithinMs = 240_000;
const gateways = 2;

/** The model as its author has edited it: the same name and shape, other code. The caller removes the folder. */
export function editedModel() {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-edited-"));
  const library = new URL("../../packages/sheaf/dist/node/index.js", import.meta.url).href;
  const source = readFileSync(ownModel, "utf8")
    .replace(/from ".*dist\/node\/index.js"/, `from ${JSON.stringify(library)}`)
    .replace("const version = 1", "const version = 2");
  const file = join(folder, basename(ownModel));
  writeFileSync(file, source);
  return { file, remove: () => rmSync(folder, { recursive: true }) };
}

/**
 * @param env settings of every process, such as NATS_ACK_WAIT_MS
 * @param via `"proxy"`, so that the way to NATS can be cut, `"direct"`, or `"cluster"`: three NATS servers with a copy of the
 *   queue at each
 */
export async function startFleet({ env = {}, workerEnv = {}, via = "proxy", workers = 2, model = ownModel } = {}) {
  const nats = via === "cluster" ? await startNatsCluster() : await startNats();
  const direct = { url: nats.url, close: async () => undefined };
  const folder = mkdtempSync(join(tmpdir(), "sheaf-runs-"));
  const runsFile = join(folder, "runs");
  writeFileSync(runsFile, "");
  const proxy = via === "proxy" ? await startCuttable(nats.url) : direct;
  const copies = via === "cluster" ? { NATS_REPLICAS: "3" } : {};
  const members = [];
  const start = async (role, name, port) => {
    const own = role === "worker" ? workerEnv : {};
    const all = { ...copies, ...env, ...own, RUNS_FILE: runsFile, NATS_URL: proxy.url };
    members.push(new Member(role, name, port, all, model));
  };
  for (let i = 0; i < gateways; i++) await start("gateway", `gateway ${i + 1}`, await freePort());
  for (let i = 0; i < workers; i++) await start("worker", `worker ${i + 1}`, await freePort());
  const fleet = {
    nats,
    proxy,
    gateways: members.filter(({ role }) => role === "gateway"),
    workers: members.filter(({ role }) => role === "worker"),
    forgetRuns: () => writeFileSync(runsFile, ""),
    /** How often an item ran, on average; more than once after a fault, or where its client tried again. */
    runsPerItem: () => {
      const runs = readFileSync(runsFile, "utf8")
        .split("\n")
        .filter((id) => id !== "" && id !== "-1");
      return runs.length / new Set(runs).size;
    },
    ready: () => Promise.all(members.map((member) => member.ready())),
    stop: async () => {
      await Promise.all(members.map((member) => member.end("SIGKILL")));
      await proxy.close();
      await nats.stop();
      rmSync(folder, { recursive: true });
    },
  };
  try {
    await fleet.ready();
  } catch (error) {
    await fleet.stop();
    throw error;
  }
  return fleet;
}

/** One process, which can be ended, stopped and started again on its port. */
class Member {
  restarts = 0;
  said = "";
  #child;
  #keepAlive = false;

  constructor(role, name, port, env, model = ownModel) {
    Object.assign(this, { role, name, port, env, model, origin: `http://127.0.0.1:${port}` });
    this.start();
  }

  get pid() {
    return this.#child.pid;
  }

  start() {
    const words = ["serve", this.model, "--role", this.role, "--port", String(this.port), "--log-level", "warn"];
    const { PATH, HOME } = process.env;
    const child = spawn(process.execPath, [command, ...words], {
      env: { PATH, HOME, WARMUP_BATCHES: "3", ...this.env },
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (text) => (this.said = (this.said + text).slice(-10_000)));
    this.exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));
    this.#child = child;
    void this.exited.then(() => {
      if (!this.#keepAlive || this.#child !== child) return;
      this.restarts++;
      this.start();
    });
  }

  /** From now on it is started again whenever it ends, as a supervisor would. */
  keepAlive(isKept) {
    this.#keepAlive = isKept;
  }

  async ready() {
    const untilMs = Date.now() + readyWithinMs;
    while (Date.now() < untilMs) {
      if ((await statusOf(`${this.origin}/readyz`)) === 200) return;
      await sleep(50);
    }
    throw new Error(`${this.name} was not ready within ${readyWithinMs} ms. Its output:\n${this.said}`);
  }

  signal(signal) {
    this.#child.kill(signal);
  }

  async end(signal) {
    this.#keepAlive = false;
    this.#child.kill("SIGCONT");
    this.#child.kill(signal);
    return this.exited;
  }
}

async function statusOf(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(20_000) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}
