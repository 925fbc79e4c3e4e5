// An API of language models on a port of this machine, with the routes and shapes of OpenAI's and Anthropic's: it answers with the words
// of the last message. Its limits are those of limited-llm-api.mjs, where a test needs any.
import { createServer } from "node:http";
import { once } from "node:events";

const words = (text) => text.match(/\S+\s*/g) ?? [];

/**
 * `requests` has each request's `url`, `headers` and `bytes`. `fault(request, number)` may return `{ status, headers, body }`;
 * `before(request)` is awaited before each answer, `each(index)` before each chunk of a stream. `headers` are those of every answer.
 */
export async function llmServer({
  fault = () => undefined,
  before = () => undefined,
  each = () => undefined,
  headers = {},
} = {}) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const bytes = Buffer.concat(await collected(request));
    const asked = {
      method: request.method,
      url: request.url,
      headers: request.headers,
      bytes,
      closed: once(response, "close"),
    };
    requests.push(asked);
    const wrong = fault(asked, requests.length);
    if (wrong !== undefined) {
      response.writeHead(wrong.status, { "content-type": "application/json", ...wrong.headers });
      return response.end(JSON.stringify(wrong.body ?? { error: { message: "no", type: "rate_limit_error" } }));
    }
    await before(asked);
    const body = JSON.parse(bytes);
    const route = request.url.split("?")[0].replace(/^\/v1\//, "");
    const { full, chunks } = shapes[route](body);
    if (body.stream !== true) {
      response.writeHead(200, { "content-type": "application/json", ...headers });
      return response.end(JSON.stringify(full));
    }
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", ...headers });
    response.flushHeaders();
    for (const [index, [event, data]] of chunks.entries()) {
      await each(index);
      if (response.destroyed) return;
      response.write(
        `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
      );
    }
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url, baseURL: `${url}/v1`, requests, close };
}

async function collected(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return pieces;
}

const textIn = (content) => (typeof content === "string" ? content : content.map(({ text }) => text).join(""));

const shapes = {
  "chat/completions"({ model, messages, stream_options }) {
    const answer = words(textIn(messages.at(-1).content));
    const usage = { prompt_tokens: 7, completion_tokens: answer.length, total_tokens: 7 + answer.length };
    const base = { id: "chatcmpl-1", created: 1, model };
    const message = { role: "assistant", content: answer.join("") };
    const choice = (delta, finish_reason = null) => ({ index: 0, delta, finish_reason });
    const chunk = (choices, more) => [undefined, { ...base, object: "chat.completion.chunk", choices, ...more }];
    return {
      full: { ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }], usage },
      chunks: [
        ...answer.map((content, i) => chunk([choice(i === 0 ? { role: "assistant", content } : { content })])),
        chunk([choice({}, "stop")]),
        ...(stream_options?.include_usage === true ? [chunk([], { usage })] : []),
        [undefined, "[DONE]"],
      ],
    };
  },
  completions({ model, prompt }) {
    const answer = words(prompt);
    const usage = { prompt_tokens: 5, completion_tokens: answer.length, total_tokens: 5 + answer.length };
    const base = { id: "cmpl-1", object: "text_completion", created: 1, model };
    const choices = (text) => [{ index: 0, text, finish_reason: "stop", logprobs: null }];
    return {
      full: { ...base, choices: choices(answer.join("")), usage },
      chunks: [...answer.map((text) => [undefined, { ...base, choices: choices(text) }]), [undefined, "[DONE]"]],
    };
  },
  responses({ model, input }) {
    const answer = words(typeof input === "string" ? input : textIn(input.at(-1).content));
    const text = answer.join("");
    const usage = { input_tokens: 6, output_tokens: answer.length, total_tokens: 6 + answer.length, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } }; // prettier-ignore
    const content = [{ type: "output_text", text, annotations: [] }];
    const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content };
    const full = { id: "resp_1", object: "response", created_at: 1, model, status: "completed", output: [item], usage };
    const event = (type, more) => [type, { type, sequence_number: 0, ...more }];
    const part = { item_id: "msg_1", output_index: 0, content_index: 0 };
    return {
      full,
      chunks: [
        event("response.created", { response: { ...full, status: "in_progress", output: [], usage: null } }),
        event("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } }),
        event("response.content_part.added", { ...part, part: { ...content[0], text: "" } }),
        ...answer.map((delta) => event("response.output_text.delta", { ...part, delta, logprobs: [] })),
        event("response.output_text.done", { ...part, text, logprobs: [] }),
        event("response.content_part.done", { ...part, part: content[0] }),
        event("response.output_item.done", { output_index: 0, item }),
        event("response.completed", { response: full }),
      ],
    };
  },
  messages({ model, messages }) {
    const answer = words(textIn(messages.at(-1).content));
    const full = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model,
      stop_reason: "end_turn",
      stop_sequence: null,
    };
    const usage = { input_tokens: 8, output_tokens: answer.length };
    const event = (type, more) => [type, { type, ...more }];
    return {
      full: { ...full, content: [{ type: "text", text: answer.join("") }], usage },
      chunks: [
        event("message_start", {
          message: { ...full, stop_reason: null, content: [], usage: { ...usage, output_tokens: 1 } },
        }),
        event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
        ...answer.map((text) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
        event("content_block_stop", { index: 0 }),
        event("message_delta", {
          delta: { stop_reason: "end_turn", stop_sequence: null },
          usage: { output_tokens: answer.length },
        }),
        event("message_stop", {}),
      ],
    };
  },
};
