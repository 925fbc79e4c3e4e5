import assert from "node:assert/strict";
import { test } from "node:test";
import { checkValueCount } from "../../dist/http/bodies/value-count.js";
import type { ModelDefinition } from "../../dist/index.js";
import { doubling, measuringTexts, serving } from "./serving.js";

const echo: ModelDefinition = { name: "echo", input: { kind: "json" }, output: { kind: "json" }, run: (items: unknown[]) => items }; // prettier-ignore
const filled = (part: string): string => part.repeat(1_500_000 / part.length);

for (const { name, values } of [
  { name: "numbers", values: `${filled("0,")}0` },
  { name: "texts", values: `${filled('"a",')}"a"` },
  { name: "lists of token ids", values: `[${filled("7,1],[")}7]` },
]) {
  test(`a large body of more ${name} than any request may have is refused before it is parsed`, async (t) => {
    const server = await serving(t, [measuringTexts(), doubling()], { maxInputs: 10 });
    // The body is not JSON: a parser would say so.
    const posts: [path: string, body: string, most: number][] = [
      ["/infer", `{"inputs":[${values}`, 11_000],
      ["/infer/double", `{"inputs":[${values}`, 10_030],
      ["/v1/embeddings", `{"model":"measure","input":[${values}`, 11_000],
      ["/embed", `{"inputs":[${values}`, 11_000],
      ["/embed_all", `{"inputs":[${values}`, 11_000],
      ["/predict", `{"inputs":[${values}`, 11_000],
      ["/rerank", `{"query":"a","texts":[${values}`, 11_000],
      ["/v1/rerank", `{"query":"a","documents":[${values}`, 11_000],
      ["/v2/embed", `{"texts":[${values}`, 11_000],
      ["/api/embed", `{"model":"measure","input":[${values}`, 11_000],
      ["/vectors", `{"text":"a","config":[${values}`, 11_000],
      ["/v2/models/measure/infer", `{"inputs":[{"data":[${values}`, 11_000],
      ["/v2/models/double/infer", `{"inputs":[{"data":[${values}`, 10_030],
    ];
    for (const [path, body, most] of posts) {
      const { status, text } = await server.post(path, body);
      assert.equal(status, 422, `${path}: ${text.slice(0, 200)}`);
      assert.ok(text.includes(`The body must have at most ${most} values`), `${path}: ${text.slice(0, 200)}`);
    }
  });
}

test("a large array that is longer than the model's is refused before it is parsed", async (t) => {
  const server = await serving(t, [doubling()]);
  for (const [body, path] of [
    [`[${filled("0.123456789,")}`, "The body"],
    [`{"input":[${filled("0.123456789,")}`, "input"],
  ] as const) {
    const { status, text } = await server.post("/infer", body);
    assert.equal(status, 422, text.slice(0, 200));
    assert.ok(text.includes(`${path} must be an array of 3 numbers, got more.`), text.slice(0, 200));
  }
});

test("commas in texts count for nothing, and a model of any JSON takes large arrays", async (t) => {
  const server = await serving(t, [measuringTexts(), echo], { maxInputs: 20 });
  const texts = Array<string>(20).fill(",".repeat(99_999));
  const embedded = await server.post("/v1/embeddings", { model: "measure", input: texts });
  assert.equal(embedded.status, 200, embedded.text.slice(0, 200));
  assert.equal(embedded.json.data.length, 20);
  const zeros = await server.post("/infer/echo", `{"input":[${filled("0,")}0]}`);
  assert.equal(zeros.status, 200);
  assert.equal(zeros.json.output.length, 750_001);
});

test("values are counted to the last one, and few bytes are not counted", () => {
  const body = (commas: number): Buffer => Buffer.from(`["${",".repeat(2_000_000)}"${',"\\",0"'.repeat(commas)}]`);
  checkValueCount(body(5000), 5001);
  assert.throws(() => checkValueCount(body(5000), 5000), /at most 5000 values/);
  checkValueCount(Buffer.from(`[${"0,".repeat(499_000)}0]`), 5000);
});
