// Real clients of language models through `sheaf proxy`, with only their address changed: they get what they get without it, and their
// requests reach the API as they were sent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, streamText, wrapLanguageModel } from "ai";
import OpenAI from "openai";
import { pacedModel } from "sheaf/adapters/llm";
import { llmServer } from "../fakes/llm-server.mjs";
import { runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { proxy } from "./lib/serving.mjs";

const text = "The cat sits outside and waits";
const messages = [{ role: "user", content: text }];
const apiKey = "sk-test";

async function all(stream, of) {
  const pieces = [];
  for await (const chunk of stream) pieces.push(of(chunk));
  return pieces;
}

/** Each takes a URL and resolves with what its user gets. */
const clients = {
  async openai(baseURL) {
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
    const body = { model: "m", messages };
    const asked = { ...body, stream: true, stream_options: { include_usage: true } };
    return {
      chat: await client.chat.completions.create(body),
      "chat stream": await all(
        await client.chat.completions.create({ ...body, stream: true }),
        ({ choices }) => choices[0].delta.content,
      ),
      "with usage": await all(await client.chat.completions.create(asked), ({ usage }) => usage?.total_tokens),
      completions: await client.completions.create({ model: "m", prompt: text }),
      responses: await client.responses.create({ model: "m", input: text }),
      "responses stream": await all(
        await client.responses.create({ model: "m", input: text, stream: true }),
        (event) => event,
      ),
    };
  },
  async "Anthropic's"(baseURL) {
    const client = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ""), apiKey, maxRetries: 0 });
    const body = { model: "m", messages, max_tokens: 100 };
    // One that is read late has lost its events.
    const stream = client.messages.stream(body);
    const events = await all(stream, ({ type }) => type);
    return { events, final: await stream.finalMessage(), messages: await client.messages.create(body) };
  },
  async "the AI SDK"(baseURL) {
    const model = createOpenAICompatible({ name: "local", baseURL, apiKey }).languageModel("m");
    const streamed = streamText({ model, prompt: text, maxRetries: 0 });
    return {
      text: (await generateText({ model, prompt: text, maxRetries: 0 })).text,
      stream: await all(streamed.textStream, (piece) => piece),
    };
  },
  async LangChain(baseURL) {
    const chat = new ChatOpenAI({ model: "m", apiKey, maxRetries: 0, configuration: { baseURL } });
    return {
      invoke: (await chat.invoke(text)).content,
      stream: await all(await chat.stream(text), ({ content }) => content),
    };
  },
};

async function targets(t) {
  const api = await llmServer();
  t.after(() => api.close());
  return { api, direct: api.baseURL, proxied: `${await proxy(t, api.baseURL)}/v1` };
}

/** What a request says, but for its connection: bodies byte for byte, but for the usage that the proxy asks for. */
const sent = ({ url, headers, bytes }) => ({
  url,
  body: bytes.toString().replace('"stream_options":{"include_usage":true},', ""),
  key: headers.authorization ?? headers["x-api-key"],
  names: Object.keys(headers)
    .filter((name) => name.startsWith("x-stainless") || name.startsWith("anthropic"))
    .sort(),
  agent: headers["user-agent"],
});

for (const [name, run] of Object.entries(clients))
  test(`${name} client: through the proxy its user gets the same, and the API the same requests`, async (t) => {
    const { api, direct, proxied } = await targets(t);
    const expected = await run(direct);
    const requests = api.requests.splice(0);
    assert.deepEqual(await run(proxied), expected);
    assert.deepEqual(api.requests.map(sent), requests.map(sent));
    assert.match(JSON.stringify(expected), /outside/);
  });

test("openai for Python: the same", { skip: skipWithoutPython }, async (t) => {
  const { api, direct, proxied } = await targets(t);
  const { version, replies } = await runPython("llm_client.py", [direct, proxied], { text });
  t.diagnostic(version);
  assert.deepEqual(replies[1], replies[0]);
  assert.equal(replies[0].chat, text);
  const half = api.requests.length / 2;
  assert.deepEqual(api.requests.slice(half).map(sent), api.requests.slice(0, half).map(sent));
});

test("pacedModel is middleware of the AI SDK's: usage and limits are read from text and streams", async (t) => {
  const headers = { "x-ratelimit-limit-tokens": "60000", "x-ratelimit-remaining-tokens": "59000" };
  const api = await llmServer({ headers });
  t.after(() => api.close());
  let batcher;
  const middleware = pacedModel({ onBatcher: (made) => (batcher = made) });
  const model = wrapLanguageModel({
    model: createOpenAICompatible({ name: "local", baseURL: api.baseURL, includeUsage: true }).languageModel("m"),
    middleware,
  });
  const providerOptions = { sheaf: { tenant: "a", priority: "bulk" } };
  assert.equal((await generateText({ model, prompt: text, providerOptions, maxRetries: 0 })).text, text);
  assert.equal(batcher.stats().rateLimit.weight.used, 13);
  const { textStream } = streamText({ model, prompt: text, maxRetries: 0 });
  assert.equal((await all(textStream, (piece) => piece)).join(""), text);
  await batcher.drain();
  const { used, perMinute } = batcher.stats().rateLimit.weight;
  assert.deepEqual([used, perMinute], [26, 60_000]);
});
