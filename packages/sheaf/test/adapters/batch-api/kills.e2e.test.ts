import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { batchApi, type BatchFault } from "../../../../../test/fakes/batch-api.mjs";
import { seededRandom } from "../../../dist/internal/tuning.js";
import { seedsTo } from "../../support/seeds.js";

const inputs = 10_000;
const { vectorOf }: { vectorOf: (text: string) => number[] } = await import(
  new URL("../../../../../test/fakes/embedding-api.mjs", import.meta.url).href
);

/** Each fault that a provider or the way to it may have, at its turn and again. */
const faults: Record<string, Record<number, BatchFault>> = {
  upload: { 2: "reset", 5: 429, 9: 500 },
  create: { 1: "late", 2: { done: 500 }, 4: "reset", 5: "done-reset", 8: 429, 0: 503 },
  list: { 2: 500, 4: "reset" },
  retrieve: { 3: "reset", 7: 429, 0: 500 },
  content: { 2: "cut", 3: 500, 5: "reset", 7: "cut", 0: 429 },
  delete: { 3: 500, 6: 429 },
};

for (const seed of seedsTo(20))
  test(`a process that is killed five times loses no line of ${inputs} and pays for none twice (seed ${seed})`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "sheaf-batch-api-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const random = seededRandom(seed);
    let child: ChildProcess | undefined;
    let killIn = Infinity;
    let diedAt = "";
    const unlucky = new Set<string>();
    const api = await batchApi({
      fault: (kind, n) => faults[kind]?.[n % 10],
      // No line has bad luck twice: it would rightly fail.
      outcome: (n, { lines }) => {
        const how = n % 5 === 2 ? "expired" : n % 7 === 4 ? "failed" : "completed";
        if (how === "completed" || lines.some(({ body }) => unlucky.has(body.input))) return "completed";
        for (const { body } of lines) unlucky.add(body.input);
        return how;
      },
      runMs: 150,
      onRequest: (kind) => {
        if (--killIn !== 0) return;
        diedAt = kind;
        child!.kill("SIGKILL");
      },
    });
    t.after(() => api.close());
    const results = join(folder, "results.json");
    const caller = fileURLToPath(new URL("fixtures/caller.js", import.meta.url));
    const table: string[] = [];
    for (let kill = 1; kill <= 6; kill++) {
      killIn = kill === 6 ? Infinity : 1 + Math.floor(random() * 60);
      const asked = killIn;
      child = spawn(process.execPath, [caller, api.url, join(folder, "journal"), results, `${inputs}`], {
        stdio: "inherit",
      });
      const [code] = (await once(child, "close")) as [number | null];
      const lines = [...api.batches.values()].reduce((sum, batch) => sum + batch.lines.length, 0);
      table.push(
        `kill ${kill}: request ${asked} (${diedAt}), ${api.batches.size} batches, ${lines} lines sent, ${api.paid.size} paid`,
      );
      assert.equal(code, kill === 6 ? 0 : null, table.join("\n"));
    }
    t.diagnostic(table.join("\n"));
    const vectors = JSON.parse(readFileSync(results, "utf8")) as number[][];
    assert.equal(vectors.length, inputs);
    for (const [n, vector] of vectors.entries()) assert.deepEqual(vector, vectorOf(`text ${n}`));
    assert.equal(api.paid.size, inputs);
    const twice = [...api.paid].filter(([, times]) => times > 1);
    assert.deepEqual(twice, []);
    // Only an upload whose reply was lost may leave its file.
    const known = new Set([...api.batches.values()].flatMap(({ file, output, error }) => [file, output, error]));
    assert.deepEqual(
      [...api.files.keys()].filter((id) => known.has(id)),
      [],
    );
    const journal = join(folder, "journal", "batches");
    assert.equal(statSync(journal).mode & 0o777, 0o600);
    assert.doesNotMatch(readFileSync(journal, "utf8"), /text \d/);
  });
