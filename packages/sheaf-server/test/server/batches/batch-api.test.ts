import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporaryFolder } from "../../folder.js";
import { measuringTexts } from "../serving.js";
import { batching } from "./batching.js";

const root = fileURLToPath(new URL("../../../../../", import.meta.url));

test("the program of docs/guide/half-price.md runs against this server's own batches, and leaves no file", async (t) => {
  const { url, openai } = await batching(t, {}, [measuringTexts("text-embedding-3-small")]);
  const [, program] = /```ts\n(.*?)```/s.exec(readFileSync(`${root}docs/guide/half-price.md`, "utf8"))!;
  const code = program!
    .replace('"./batches"', `${JSON.stringify(temporaryFolder(t))}, pollMs: 20`)
    .replaceAll(/: (?:string|OpenAI\.\w+)(?=\))|!(?=\.)/g, "")
    .concat("console.log(JSON.stringify(vectors));");
  const env = { ...process.env, OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "none" };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], {
    env,
    cwd: root,
  });
  assert.deepEqual(JSON.parse(stdout), [
    [6, 97],
    [12, 97],
  ]);
  const [batch] = (await openai.batches.list()).data;
  assert.deepEqual([batch!.status, batch!.request_counts!.completed], ["completed", 2]);
  assert.deepEqual((await openai.files.list()).data, []);
});
