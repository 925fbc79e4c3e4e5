import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../../../lib/files.mjs";
import { freePort } from "../../../../test/support/serving.mjs";

/** No shutdown may take longer: its grace is 8 s. */
const longestEndMs = 60_000;
const entry = join(root, "packages/sheaf-server/dist/cli/main.js");

/** A command of `sheaf` that listens, as a process of its own; it can be ended and started again on the same port. */
export class Program {
  /** When its end was last requested, or came; requests sent before an abrupt end may be cut. */
  endedAtMs = -Infinity;
  drainedAtMs = -Infinity;
  readyAtMs = Infinity;
  exits = {};
  /** What it ended with although it was not asked to. */
  crash;
  exited;
  name;
  #child;
  #port;
  #words;
  #options;
  #heard;
  #isAsked = false;
  #isClosing = false;
  #isRevived;
  #output = "";

  /**
   * `heard(text)` gets what it writes to stdout and stderr. `isRevived`: what it serves may end it with SIGKILL, and then
   * it is started again, as an orchestrator does.
   */
  constructor(name, words, { environment = {}, cwd = root, heard = () => undefined, isRevived = false }) {
    this.name = name;
    this.#words = words;
    this.#options = { environment, cwd };
    this.#heard = heard;
    this.#isRevived = isRevived;
    process.once("exit", () => this.#child?.kill("SIGKILL"));
  }

  get port() {
    return this.#port;
  }

  get pid() {
    return this.#child.pid;
  }

  async start() {
    this.#port ??= await freePort();
    const { environment, cwd } = this.#options;
    const child = spawn(process.execPath, [entry, ...this.#words], {
      cwd,
      env: { PATH: process.env.PATH, PORT: String(this.#port), ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        this.#output = (this.#output + text).slice(-4000);
        this.#heard(text);
      });
    }
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.endedAtMs = performance.now();
        this.readyAtMs = Infinity;
        this.exits[signal ?? code] = (this.exits[signal ?? code] ?? 0) + 1;
        // What ends by itself is a crash, unless we asked for it.
        const isOwnEnd = !this.#isAsked && !this.#isClosing;
        this.#isAsked = false;
        if (isOwnEnd && this.#isRevived && signal === "SIGKILL") this.#revive();
        else if (isOwnEnd) this.crash = `${this.name} ended with ${signal ?? code}: ${this.#output}`;
        resolve();
      });
    });
    await this.#untilReady();
  }

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
    await this.#end();
    await this.start();
  }

  /** Stops it for a while, as a machine that swaps does. */
  async pause(ms) {
    const child = this.#child;
    child.kill("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, ms));
    child.kill("SIGCONT");
  }

  /** What an orchestrator's probe sees. */
  async state() {
    const response = await fetch(`http://127.0.0.1:${this.#port}/readyz`).catch(() => undefined);
    if (response === undefined) return "gone";
    // A server that is ended meanwhile cuts its answer.
    const body = await response.json().catch(() => undefined);
    return body?.status ?? "gone";
  }

  async close() {
    this.#isClosing = true;
    await this.#end();
  }

  #revive() {
    this.start().catch((error) => (this.crash ??= error.message));
  }

  async #end() {
    const child = this.#child;
    const tooLate = setTimeout(() => {
      this.crash = `${this.name} did not end within ${longestEndMs} ms of SIGTERM: ${this.#output}`;
      child.kill("SIGKILL");
    }, longestEndMs);
    child.kill("SIGTERM");
    await this.exited;
    clearTimeout(tooLate);
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
    throw new Error(`${this.name} does not become ready: ${this.#output}`);
  }
}
