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
const workerFile = join(folder, "the chaos model.mjs");
const sheafNode = new URL("../../../packages/sheaf/dist/node/index.js", import.meta.url).href;
const source = readFileSync(fileURLToPath(new URL("chaos-worker.mjs", import.meta.url)), "utf8");
writeFileSync(workerFile, source.replace('"sheaf/node"', JSON.stringify(sheafNode)).replaceAll("\n", "\r\n"));
const config = join(folder, "sheaf.config.json");
writeFileSync(config, `\uFEFF{\r\n  "models": [{ "model": ${JSON.stringify(workerFile)}, "name": "chaos" }]\r\n}\r\n`);

/** `sheaf serve` with the chaos model. */
export class Served extends Program {
  /** `isolation`: `"thread"` or `"process"`. `environment`: further variables of the server. */
  constructor(isolation, environment = {}) {
    super(`server with worker ${isolation === "thread" ? "threads" : "processes"}`, ["serve", "--config", config], {
      cwd: folder,
      environment: {
        WORKER_ISOLATION: isolation,
        WORKERS: "2",
        // At a lower priority than those who compete for the CPU a run could be held up for seconds.
        WORKER_NICENESS: "0",
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
