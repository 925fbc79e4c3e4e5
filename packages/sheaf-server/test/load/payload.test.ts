import assert from "node:assert/strict";
import { test } from "node:test";
import { bodiesFromFile, bodiesFromTemplate } from "../../dist/load/payload.js";
import { renderRequest } from "../../dist/load/http/request.js";

test("a template gives different, valid bodies, the same for the same seed", () => {
  const bodies = bodiesFromTemplate('{"input": {{floats 3}}, "text": {{words 4}}, "n": {{int 10}}, "i": {{i}}}', 1);
  assert.equal(new Set(bodies).size, 64);
  for (const [i, body] of bodies.entries()) {
    const value = JSON.parse(body) as { input: number[]; text: string; n: number; i: number };
    assert.equal(value.input.length, 3);
    assert.ok(value.input.every((number) => Math.abs(number) <= 1));
    assert.equal(value.text.split(" ").length, 4);
    assert.ok(Number.isInteger(value.n) && value.n >= 0 && value.n < 10);
    assert.equal(value.i, i);
  }
  assert.deepEqual(bodiesFromTemplate("{{floats 3}}", 1), bodiesFromTemplate("{{floats 3}}", 1));
  assert.notDeepEqual(bodiesFromTemplate("{{floats 3}}", 1), bodiesFromTemplate("{{floats 3}}", 2));
});

test("words are a JSON string of their own, and bare inside one", () => {
  const [body = ""] = bodiesFromTemplate(
    '{"a": {{words 3}}, "b": "{{words 3}}", "c": "say \\"{{words 2}}\\" {{int 5}} times"}',
    1,
  );
  const { a, b, c } = JSON.parse(body) as Record<string, string>;
  for (const text of [a, b]) assert.match(text!, /^[a-z]+ [a-z]+ [a-z]+$/);
  assert.match(c!, /^say "[a-z]+ [a-z]+" \d times$/);
});

test("a template without a placeholder is one body; an unknown one is refused by name", () => {
  assert.deepEqual(bodiesFromTemplate('"hello"', 1), ['"hello"']);
  assert.throws(
    () => bodiesFromTemplate("{{flaots 3}}", 1),
    /unknown placeholder \{\{flaots 3\}\}: use \{\{floats N\}\}/,
  );
  assert.throws(() => bodiesFromTemplate("{{floats 0}}", 1), /N from 1 to 1000000/);
});

test("a .jsonl file gives a body a line, any other file one body", () => {
  assert.deepEqual(bodiesFromFile("a.jsonl", '"a"\n\n"b"\n'), ['"a"', '"b"']);
  assert.deepEqual(bodiesFromFile("a.json", "[1,\n2]"), ["[1,\n2]"]);
  assert.throws(() => bodiesFromFile("a.jsonl", "\n"), /a\.jsonl holds no line/);
});

test("a header may replace ours, and cannot smuggle in a second request", () => {
  const url = new URL("http://localhost:8000/infer?x=1");
  const text = renderRequest({ url, method: "POST", headers: { "Content-Type": "text/plain" }, body: "ä" }).toString();
  assert.match(text, /^POST \/infer\?x=1 HTTP\/1\.1\r\nhost: localhost:8000\r\n/);
  assert.match(text, /content-type: text\/plain\r\ncontent-length: 2\r\n\r\nä$/);
  assert.throws(
    () => renderRequest({ url, method: "GET", headers: { a: "b\r\nc: d" } }),
    /must be "name: value" on one/,
  );
});

test("lengths say how many words each text has: drawn, the same for the same seed, or one after the other", () => {
  const wordsOf = (body: string): number => (JSON.parse(body) as string).split(" ").length;
  const drawn = bodiesFromTemplate("{{words 12}}", 1, { pattern: "lognormal", median: 40, p99: 400 });
  assert.deepEqual(bodiesFromTemplate("{{words 12}}", 1, { pattern: "lognormal", median: 40, p99: 400 }), drawn);
  const counts = drawn.map(wordsOf).sort((a, b) => a - b);
  assert.equal(counts.length, 1024);
  assert.ok(counts[512]! > 35 && counts[512]! < 45, `${counts[512]}`);
  assert.ok(counts[1013]! > 280 && counts[1013]! < 560, `${counts[1013]}`);
  const traced = bodiesFromTemplate("{{words 12}}", 1, { pattern: "trace", weights: [3, 50] });
  assert.deepEqual(traced.slice(0, 4).map(wordsOf), [3, 50, 3, 50]);
  assert.throws(
    () => bodiesFromTemplate("{{floats 4}}", 1, { pattern: "trace", weights: [3] }),
    /lengths are for templates with \{\{words N\}\}/,
  );
});
