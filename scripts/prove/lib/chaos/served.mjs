import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Program } from "./program.mjs";

/** A run takes some 10 ms, 300 where an item says so; the rest is for a machine that has other things to do. */
export const limits = { requestTimeoutMs: 4000, runTimeoutMs: 3000, graceMs: 8000 };

const folder = join(mkdtempSync(join(tmpdir(), "sheaf-chaos-")), "a folder with spaces");
process.on("exit", () => rmSync(join(folder, ".."), { recursive: true, force: true }));
mkdirSync(folder);
const sheafNode = new URL("../../../../packages/sheaf/dist/node/index.js", import.meta.url).href;
const sourceOf = (name) => readFileSync(fileURLToPath(new URL(name, import.meta.url)), "utf8").replaceAll("\n", "\r\n");
const inJavaScript = configOf(
  "the chaos model.mjs",
  sourceOf("chaos-worker.mjs").replace('"sheaf/node"', JSON.stringify(sheafNode)),
);
const inPython = configOf("the chaos model.py", sourceOf("chaos_model.py"));

/** Path of a config that serves this source as `chaos`. */
function configOf(name, source) {
  const model = join(folder, name);
  writeFileSync(model, source);
  const config = `${model}.config.json`;
  writeFileSync(config, `\uFEFF{\r\n  "models": [{ "model": ${JSON.stringify(model)}, "name": "chaos" }]\r\n}\r\n`);
  return config;
}

const kinds = {
  thread: { workers: "worker threads", config: inJavaScript, isolation: "thread" },
  process: { workers: "worker processes", config: inJavaScript, isolation: "process" },
  python: { workers: "Python workers", config: inPython, isolation: "thread" },
};

/** `sheaf serve` with the chaos model. */
export class Served extends Program {
  /**
   * `kind`: `"thread"`, `"process"` or `"python"`. `environment`: further variables of the server. `program`: further
   * options of the `Program`, and a name.
   */
  constructor(kind, environment = {}, { name, ...program } = {}) {
    const { workers, config, isolation } = kinds[kind];
    super(name ?? `server with ${workers}`, ["serve", "--config", config], {
      ...program,
      cwd: folder,
      environment: {
        WORKER_ISOLATION: isolation,
        WORKERS: "2",
        // At a lower priority than others on the CPU a run could be delayed for seconds.
        MAX_BATCH_SIZE: "16",
        QUEUE_MAX_SIZE: "100",
        WARMUP_BATCHES: "0",
        REQUEST_TIMEOUT_MS: String(limits.requestTimeoutMs),
        RUN_TIMEOUT_MS: String(limits.runTimeoutMs),
        SHUTDOWN_GRACE_MS: String(limits.graceMs),
        UPLOAD_TIMEOUT_MS: "5000",
        LOG_LEVEL: "error",
        ...environment,
      },
    });
  }

  /** The ids of its worker processes; none where they are threads. */
  workerPids() {
    try {
      const { pid } = this;
      return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
    } catch {
      return [];
    }
  }

  /** Resident memory in MiB, and open file handles. */
  resources() {
    const { pid } = this;
    const residentKib = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);
    return { residentMib: residentKib / 1024, handles: readdirSync(`/proc/${pid}/fd`).length };
  }
}
