// OpenAI's client for Python, unmodified, with files and batches; packages/sheaf-server/test/server/batches has the one for JavaScript.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { serve } from "./lib/serving.mjs";

const texts = Array.from({ length: 40 }, (_, n) => `Text number ${n}`);

test(
  "openai for Python runs a batch, reads its results, and deletes its files",
  { skip: skipWithoutPython },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "sheaf-batches-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const url = await serve(t, "use-lite", "--batches-dir", folder);
    const { version, replies } = await runPython("batches_client.py", [`${url}/v1`], {
      model: "use-lite",
      texts,
      many: [],
    });
    t.diagnostic(`version ${version}`);
    const [{ vectors, gone, ...reply }] = replies;
    assert.deepEqual(reply, {
      status: "completed",
      counts: { completed: 40, failed: 0, total: 40 },
      kept_s: 7200,
      // A page of one leads to the next.
      files: ["batch_output", "batch"],
      batches: [true],
      cancelled: "completed",
      deleted: [true, true],
    });
    assert.match(gone, /NotFoundError.*There is no file/s);
    const body = JSON.stringify({ model: "use-lite", input: texts });
    const headers = { "content-type": "application/json" };
    const { data } = await (await fetch(`${url}/v1/embeddings`, { method: "POST", headers, body })).json();
    for (const [n, { embedding }] of data.entries())
      for (const [i, value] of embedding.entries()) assert.ok(Math.abs(value - vectors[n][i]) < 1e-5, `${n}[${i}]`);
  },
);
