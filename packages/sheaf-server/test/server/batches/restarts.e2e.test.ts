import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import OpenAI from "openai";
import { ready, sheaf } from "../../e2e/sheaf-process.js";
import { temporaryFolder } from "../../folder.js";
import { line, linesOf, start, until } from "./batching.js";

test("a server that is killed five times loses no line, doubles none, and its vectors are those of live requests", async (t) => {
  const folder = temporaryFolder(t);
  const texts = Array.from(
    { length: 1500 },
    (_, n) => `Text number ${n % 700} about ${["cats", "guitars", "films"][n % 3]}`,
  );
  let batch: { id: string } | undefined;
  let total = 0;
  for (const killAt of [1, 200, 201, 700, 1100, Infinity]) {
    const served = sheaf(t, ["serve", "use-lite", "--port", "0", "--warmup-batches", "0"], { BATCHES_DIR: folder });
    const url = await ready(served);
    const openai = new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, maxRetries: 0 });
    batch ??= await start(
      openai,
      texts.map((text, n) => line(`${n}`, text, { body: { model: "use-lite", input: text } })),
    );
    const seen = await until(
      openai,
      batch,
      ({ status, request_counts: counts }) => status === "completed" || counts!.completed >= killAt,
    );
    assert.ok(seen.request_counts!.completed >= total, "what was written down is lost");
    total = seen.request_counts!.completed;
    if (killAt === Infinity) {
      const lines = await linesOf(openai, seen.output_file_id);
      assert.equal(lines.length, texts.length);
      assert.equal(new Set(lines.map((one) => one.custom_id)).size, texts.length);
      const live = await openai.embeddings.create({ model: "use-lite", input: texts, encoding_format: "float" });
      for (const { custom_id: id, response } of lines)
        for (const [i, value] of response.body.data[0].embedding.entries())
          assert.ok(Math.abs(value - live.data[Number(id)]!.embedding[i]!) < 1e-5, `${id}[${i}]`);
    }
    served.child.kill("SIGKILL");
    await once(served.child, "close").catch(() => undefined);
  }
});

test("a second server on the folder refuses to start and names the first", async (t) => {
  const folder = temporaryFolder(t);
  const first = sheaf(t, ["serve", "mlp", "--port", "0"], { BATCHES_DIR: folder });
  await ready(first);
  const second = sheaf(t, ["serve", "mlp", "--port", "0"], { BATCHES_DIR: folder });
  assert.equal(await second.ended, 1);
  assert.match(second.output.stderr + second.output.stdout, new RegExp(`belongs to process ${first.child.pid} on`));
});
