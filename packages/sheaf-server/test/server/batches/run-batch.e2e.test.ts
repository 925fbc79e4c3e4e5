import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sheaf } from "../../e2e/sheaf-process.js";
import { temporaryFolder } from "../../folder.js";
import { line, textOf } from "./batching.js";

const fast = ["--warmup-batches", "0"];

test("sheaf run-batch answers every line of a file, without a server", async (t) => {
  const folder = temporaryFolder(t);
  const [input, output] = ["in.jsonl", "out.jsonl"].map((name) => join(folder, name)) as [string, string];
  const lines = Array.from({ length: 40 }, (_, n) =>
    line(`${n}`, n === 7 ? "" : `text ${n}`, { body: { input: n === 7 ? "" : `text ${n}` } }),
  );
  writeFileSync(input, textOf(lines));
  const run = sheaf(t, ["run-batch", "-i", input, "-o", output, "use-lite", ...fast]);
  assert.equal(await run.ended, 0, run.output.stderr);
  assert.match(run.output.stderr, /40 lines, 1 of them with an error/);
  const results = readFileSync(output, "utf8")
    .trimEnd()
    .split("\n")
    .map((one) => JSON.parse(one));
  assert.equal(new Set(results.map((one) => one.custom_id)).size, 40);
  assert.equal(results.find((one) => one.custom_id === "3").response.body.data[0].embedding.length, 512);
  assert.equal(results.find((one) => one.custom_id === "7").response.status_code, 422);
  assert.equal(existsSync(`${output}.part`), false);

  writeFileSync(input, textOf([line("a", "x", { body: { input: "x" } }), "no JSON"]));
  const wrong = sheaf(t, ["run-batch", "-i", input, "-o", output, "use-lite", ...fast]);
  assert.equal(await wrong.ended, 1);
  assert.match(wrong.output.stderr, /in\.jsonl:2: The line is not JSON/);
  const absent = sheaf(t, ["run-batch", "-i", `${input}x`, "-o", output]);
  assert.equal(await absent.ended, 2);
});

test("after an error the same command goes on, and does not take another input for it", async (t) => {
  const folder = temporaryFolder(t);
  const [input, other, output] = ["in.jsonl", "other.jsonl", "out.jsonl"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const fileOf = (id: string): string => textOf([line(id, "x", { body: { input: `text of ${id}` } })]);
  writeFileSync(input, fileOf("a"));
  writeFileSync(other, fileOf("b"));
  const run = async (from: string) => {
    const { ended, output: said } = sheaf(t, ["run-batch", "-i", from, "-o", output, "use-lite", ...fast]);
    return [await ended, said.stderr] as const;
  };
  // Its results cannot be written there.
  mkdirSync(output);
  assert.notEqual((await run(input))[0], 0);
  rmdirSync(output);
  const [code, stderr] = await run(other);
  assert.equal(code, 2);
  assert.match(stderr, /out\.jsonl\.part has the results of another input/);
  assert.equal((await run(input))[0], 0);
  assert.equal(JSON.parse(readFileSync(output, "utf8")).custom_id, "a");
  assert.equal(existsSync(`${output}.part`), false);
});
