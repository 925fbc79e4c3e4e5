// The clients that people point at an OpenAI-compatible server, unmodified, against the built server with its built-in
// model and against the proxy before it. Each is a program in clients/.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buildGo, skipWithoutGo } from "./lib/go.mjs";
import { runProgram, runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { runtime } from "./lib/runtimes.mjs";
import { proxy, serve } from "./lib/serving.mjs";

const model = "use-lite";
const given = {
  model,
  texts: ["The cat sits outside", "A man is playing guitar", "The new movie is awesome"],
  many: Array.from({ length: 2048 }, (_, i) => `Text number ${i}`), // what OpenAI's API takes at most
};
// A list of 2,048 is longer than the queue. On a busy machine neither it nor the model may starve.
const patient = "--request-timeout-ms 120000 --upload-timeout-ms 120000".split(" ");
const close = [];
let targets;
let expected;
let rerankUrl;

before(async () => {
  const t = { after: (end) => close.unshift(end) };
  const url = await serve(t, model, ...patient);
  targets = { "the server": `${url}/v1`, "the proxy": `${await proxy(t, `${url}/v1`, ...patient)}/v1` };
  rerankUrl = url;
  const [texts, many] = await Promise.all([given.texts, given.many].map((input) => vectorsOf(url, input)));
  expected = { texts, many };
});
after(async () => {
  for (const end of close) await end();
});

async function vectorsOf(url, input) {
  const response = await fetch(`${url}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, input }),
  });
  assert.equal(response.status, 200);
  return (await response.json()).data.map(({ embedding }) => embedding);
}

const bun = runtime("Bun");
const deno = runtime("Deno");
const script = (command, name, env) => (urls) => runProgram([...command, name, ...urls], given, env);
const node = (name, env) => script([process.execPath], name, env);
const python = (name) => (urls) => runPython(name, urls, given);
const go = (name) => (urls, t) => runProgram([buildGo(t, name), ...urls], given);

/** Each takes URLs and resolves with `{ version, replies }`, a reply for each. */
const clients = {
  "openai for JavaScript": { run: node("openai.mjs") },
  "openai for JavaScript in Bun": { run: script(bun.command, "openai.mjs"), skip: bun.skip },
  "openai for JavaScript in Deno": { run: script(deno.command, "openai.mjs"), skip: deno.skip },
  "AI SDK 6": { run: node("ai-sdk.mjs") },
  "AI SDK 7": { run: node("ai-sdk.mjs", { AI_SDK: "7" }) },
  "LangChain for JavaScript": { run: node("langchain.mjs") },
  "openai for Python": { run: python("openai_client.py"), skip: skipWithoutPython },
  "LangChain for Python": { run: python("langchain_client.py"), skip: skipWithoutPython },
  LlamaIndex: { run: python("llama_index_client.py"), skip: skipWithoutPython },
  Haystack: { run: python("haystack_client.py"), skip: skipWithoutPython },
  "openai for Go": { run: go("openai-go"), skip: skipWithoutGo },
  litellm: { run: python("litellm_client.py"), skip: skipWithoutPython },
};

for (const [name, { run, skip = false }] of Object.entries(clients)) {
  test(`${name}: its vectors are the model's and its errors have the server's message`, { skip }, async (t) => {
    const { version, replies } = await run(Object.values(targets), t);
    t.diagnostic(`version ${version}`);
    for (const [i, target] of Object.keys(targets).entries()) {
      await t.test(target, (t) => check(t, replies[i]));
    }
  });
}

for (const [name, program] of [
  ["LlamaIndex", "rerank_client.py"],
  ["litellm", "litellm_rerank_client.py"],
])
  test(
    `${name}'s client of TEI: /rerank gives it the server's order and scores`,
    { skip: skipWithoutPython },
    async (t) => {
      const { version, replies } = await runPython(program, [rerankUrl], given);
      t.diagnostic(`version ${version}`);
      const response = await fetch(`${rerankUrl}/rerank`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ query: given.texts[1], texts: given.texts }),
      });
      assert.deepEqual(replies[0], await response.json());
      assert.equal(replies[0][0].index, 1);
    },
  );

/** What a reply holds besides query, documents, many and errors depends on the client; all of it is checked. */
function check(t, { query, documents, many, errors, floats, together, model: found, tokens, ...more }) {
  assert.deepEqual(more, {});
  assertSame([query], [expected.texts[0]]);
  assertSame(documents, expected.texts);
  assertSame(many, expected.many);
  if (floats !== undefined) assertSame(floats, expected.texts);
  if (together !== undefined) assertSame(together, Array(10).fill(expected.texts).flat());
  if (found !== undefined) assert.equal(found, model);
  if (tokens !== undefined) assert.ok(tokens > 0);
  for (const [name, message] of Object.entries(errors)) assert.match(message, messages[name], name);
}

const messages = {
  empty: /must be a text that is not empty, got (?:\\?"){2}/,
  unknown: /no model "ada-002"; served are: use-lite/,
  tokens: /does not take token ids\. With LangChain for Python, set check_embedding_ctx_length=False/,
  timeout: /timed out|deadline exceeded/,
};

function assertSame(actual, wanted) {
  assert.equal(actual.length, wanted.length);
  let difference = 0;
  for (const [i, vector] of wanted.entries()) {
    assert.equal(actual[i].length, vector.length);
    for (let j = 0; j < vector.length; j++) difference = Math.max(difference, Math.abs(vector[j] - actual[i][j]));
  }
  assert.ok(difference < 1e-6, `differs by ${difference}`);
}
