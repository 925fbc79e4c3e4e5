import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../../../scripts/lib/files.mjs";
import { freePort } from "../../../scripts/lib/serving.mjs";

export const limits = { requestTimeoutMs: 3000, runTimeoutMs: 1500, graceMs: 6000 };

const folder = join(mkdtempSync(join(tmpdir(), "sheaf-chaos-")), "a folder with spaces");
process.on("exit", () => rmSync(join(folder, ".."), { recursive: true, force: true }));
mkdirSync(folder);
const workerFile = join(folder, "the chaos model.mjs");
const sheafNode = new URL("../../../packages/sheaf/dist/node/index.js", import.meta.url).href;
const source = readFileSync(fileURLToPath(new URL("chaos-worker.mjs", import.meta.url)), "utf8");
writeFileSync(workerFile, source.replace('"sheaf/node"', JSON.stringify(sheafNode)).replaceAll("\n", "\r\n"));
const config = join(folder, "sheaf.config.json");
writeFileSync(config, `\uFEFF{\r\n  "models": [{ "model": ${JSON.stringify(workerFile)}, "name": "chaos" }]\r\n}\r\n`);

/** `sheaf serve` as a process of its own, started again whenever it ends. */
export class Served {
  /** When it was last told to end, or ended; requests sent before an abrupt end may be cut. */
  endedAtMs = -Infinity;
  drainedAtMs = -Infinity;
  readyAtMs = Infinity;
  starts = 0;
  exits = {};
  #child;
  #port;
  #isolation;
  #environment;
  #isClosing = false;
  #stderr = "";

  /** `environment`: further variables of the server. */
  constructor(isolation, environment = {}) {
    this.#isolation = isolation;
    this.#environment = environment;
  }

  get port() {
    return this.#port;
  }

  get name() {
    return `server with worker ${this.#isolation === "thread" ? "threads" : "processes"}`;
  }

  async start() {
    this.#port ??= await freePort();
    this.starts++;
    const environment = {
      PATH: process.env.PATH,
      PORT: String(this.#port),
      WORKER_ISOLATION: this.#isolation,
      WORKERS: "2",
      MAX_BATCH_SIZE: "16",
      QUEUE_MAX_SIZE: "100",
      WARMUP_BATCHES: "0",
      REQUEST_TIMEOUT_MS: String(limits.requestTimeoutMs),
      RUN_TIMEOUT_MS: String(limits.runTimeoutMs),
      SHUTDOWN_GRACE_MS: String(limits.graceMs),
      UPLOAD_TIMEOUT_MS: "5000",
      LOG_LEVEL: "error",
      ...this.#environment,
    };
    const entry = join(root, "packages/sheaf-server/dist/cli/main.js");
    const child = spawn(process.execPath, [entry, "serve", "--config", config], {
      cwd: folder,
      env: environment,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child = child;
    child.stderr.setEncoding("utf8").on("data", (text) => (this.#stderr = (this.#stderr + text).slice(-4000)));
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.endedAtMs = performance.now();
        this.readyAtMs = Infinity;
        this.exits[signal ?? code] = (this.exits[signal ?? code] ?? 0) + 1;
        // What ends by itself is a crash, unless we asked for it.
        if (!this.#isAsked && !this.#isClosing)
          this.crash = `${this.name} ended with ${signal ?? code}: ${this.#stderr}`;
        this.#isAsked = false;
        resolve();
      });
    });
    await this.#untilReady();
  }

  #isAsked = false;

  /** Ends it at once, and starts it again. */
  async killAndRestart() {
    this.endedAtMs = performance.now();
    this.readyAtMs = Infinity;
    this.#isAsked = true;
    this.#child.kill("SIGKILL");
    await this.exited;
    await this.start();
  }

  /** As an orchestrator does: SIGTERM, wait, start again. */
  async drainAndRestart() {
    this.drainedAtMs = performance.now();
    this.readyAtMs = Infinity;
    this.#isAsked = true;
    this.#child.kill("SIGTERM");
    await this.exited;
    await this.start();
  }

  /** The ids of its worker processes; none where they are threads. */
  workerPids() {
    try {
      const { pid } = this.#child;
      return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
    } catch {
      return [];
    }
  }

  /** What an orchestrator's probe sees. */
  async state() {
    const response = await fetch(`http://127.0.0.1:${this.#port}/readyz`).catch(() => undefined);
    return response === undefined ? "gone" : (await response.json()).status;
  }

  /** Resident memory in MiB, and open file handles. */
  resources() {
    const { pid } = this.#child;
    const residentKib = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);
    return { residentMib: residentKib / 1024, handles: readdirSync(`/proc/${pid}/fd`).length };
  }

  async close() {
    this.#isClosing = true;
    this.#child.kill("SIGTERM");
    await this.exited;
  }

  async #untilReady() {
    for (let i = 0; i < 600; i++) {
      if ((await this.state()) === "ok") {
        this.readyAtMs = performance.now();
        return;
      }
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`${this.name} does not become ready: ${this.#stderr}`);
  }
}
