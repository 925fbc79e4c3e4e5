/**
 * Real services before which the number of batches in flight is learned: `open()` gives a batch function and a way to close it;
 * `places` runs do the service's work side by side, each `fullMs` with a full batch; `numbers` are the fixed ones to compare.
 */
import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { createBatcher } from "sheaf";
import { startPostgres } from "../../test/integration/lib/postgres.mjs";
import { loadMlp, mlpLength, runMlp } from "../../packages/sheaf-server/dist/runners/mlp-worker.js";
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";
import { median } from "./machine.mjs";

const sleeping = { fixedMs: 60, perItemMs: 4 };
const http = {
  name: "HTTP service, 8 sleeping workers, 60 + 4 n, B 16",
  places: 8,
  maxBatchSize: 16,
  numbers: [4, 6, 8, 10, 12, 16],
  async open() {
    const service = fork(new URL("sleeping-service.mjs", import.meta.url), [
      JSON.stringify({ workers: this.places, ...sleeping }),
    ]);
    const [{ url }] = await once(service, "message");
    return {
      fullMs: sleeping.fixedMs + sleeping.perItemMs * this.maxBatchSize,
      item: (i) => i,
      run: async (items) => {
        const response = await fetch(url, { method: "POST", body: JSON.stringify(items) });
        return response.json();
      },
      close: () => service.disconnect(),
    };
  },
};

const onnx = {
  name: "ONNX model in this process, 768-3072-768, one thread, B 32",
  places: 1,
  maxBatchSize: 32,
  numbers: [1, 2, 3, 4],
  async open() {
    const session = await loadMlp({});
    const item = new Float32Array(mlpLength).fill(0.1);
    const full = Array.from({ length: this.maxBatchSize }, () => item);
    const times = [];
    for (let round = 0; round < 20; round++) {
      const startAtMs = performance.now();
      await runMlp(full, session);
      times.push(performance.now() - startAtMs);
    }
    return {
      fullMs: median(times),
      item: () => item,
      run: (items) => runMlp(items, session),
      close: () => session.release(),
    };
  },
};

const postgres = {
  name: "PostgreSQL, pg_sleep, pool of 10, 60 + 3 n, B 32",
  places: 10,
  maxBatchSize: 32,
  numbers: [4, 6, 8, 10, 12, 16],
  async open() {
    const manifest = fileURLToPath(new URL("../../test/integration/package.json", import.meta.url));
    const folder = fileURLToPath(new URL("../../test/integration", import.meta.url));
    if (!existsSync(`${folder}/node_modules`)) {
      const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder, stdio: "inherit" });
      if (status !== 0) throw new Error("integration: npm ci failed");
    }
    const { default: pg } = await import(createRequire(manifest).resolve("pg"));
    const server = await startPostgres();
    const pool = new pg.Pool({ connectionString: server.url, max: this.places });
    // The server may end before the last connections have closed.
    pool.on("error", () => undefined);
    return {
      fullMs: 60 + 3 * this.maxBatchSize,
      item: (i) => i,
      run: async (items) => {
        await pool.query("SELECT pg_sleep($1)", [(60 + 3 * items.length) / 1000]);
        return items;
      },
      close: async () => {
        await pool.end();
        await server.close();
      },
    };
  },
};

export const realServices = [http, onnx, postgres];

/** Poisson calls for `seconds`, of which the first third is not counted. */
export async function realTrial({ run, item, perMs, maxBatchSize, seconds, seed, options }) {
  const batcher = createBatcher(run, { maxBatchSize, ...options });
  const random = seededRandom(seed);
  const startAtMs = performance.now();
  const endAtMs = startAtMs + 1000 * seconds;
  const countedAtMs = startAtMs + (1000 * seconds) / 3;
  const latencies = [];
  let lost = 0;
  let [atMs, i] = [startAtMs, 0];
  const calls = [];
  while (atMs < endAtMs) {
    const waitMs = atMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    for (; atMs <= performance.now() && atMs < endAtMs; atMs -= Math.log(1 - random()) / perMs) {
      const calledAtMs = atMs;
      const isCounted = calledAtMs >= countedAtMs;
      calls.push(
        batcher(item(i++)).then(
          () => void (isCounted && latencies.push(performance.now() - calledAtMs)),
          () => void (isCounted && lost++),
        ),
      );
    }
  }
  await Promise.all(calls);
  const { concurrency } = batcher.stats();
  await batcher.close();
  return {
    meanMs: latencies.reduce((sum, ms) => sum + ms, 0) / latencies.length,
    lost: lost / (lost + latencies.length),
    last: concurrency.now,
  };
}
