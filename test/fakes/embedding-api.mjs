// An embeddings API on this machine, for tests, benches and examples: OpenAI's shapes and OpenAI's limits, vectors that
// can be told apart, and faults on request. It says what it was asked.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** What OpenAI's API takes. */
export const apiLimits = { maxInputs: 2048, maxTokens: 300_000, maxItemTokens: 8192 };

/** The vector of a text: the same text, the same vector; another text, another one. */
export function vectorOf(text, dimensions = 8) {
  let hash = 2166136261;
  for (const character of typeof text === "string" ? text : JSON.stringify(text)) {
    hash = Math.imul(hash ^ character.codePointAt(0), 16777619);
  }
  return Array.from({ length: dimensions }, (_, i) => {
    hash = Math.imul(hash ^ (hash >>> 15), 2246822519 + i);
    return Math.fround((hash >>> 8) / 2 ** 24 - 0.5);
  });
}

/** Tokens as this API counts them: four characters each. */
export const tokensOf = (input) => (typeof input === "string" ? Math.ceil(input.length / 4) : input.length);

/**
 * Listens on a free port. A request takes `latencyMs` and `perItemMs`, or until `latencyMs()` resolves; `window: { requests, ms }` refuses more
 * with 429 and `retry-after-ms`; a text for which `isPoison` is true is refused with 400 and `param`. `fault(request, n)`
 * may give `{ status, headers, body }`, `"reset"`, `"hang"` or `"short"` (one vector too few) for the n-th request. `order: "reversed"`
 * gives the vectors backwards, each with its right `index`.
 */
export async function embeddingApi({
  latencyMs = 0,
  perItemMs = 0,
  window,
  fault = () => undefined,
  isPoison = () => false,
  limits = apiLimits,
  order = "inputs",
} = {}) {
  const requests = [];
  const others = [];
  const starts = [];
  let inFlight = 0;
  let maxInFlight = 0;

  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      void answer(request, text, response);
    });
  });

  async function answer({ method, url, headers }, text, response) {
    if (method !== "POST" || !/\/embeddings(\?|$)/.test(url)) {
      others.push({ method, url, headers, body: text });
      return send(response, 200, {}, { object: "list", data: [{ id: "tiny", object: "model" }], method, url });
    }
    const body = parsed(text);
    if (body === undefined) {
      others.push({ method, url, headers, body: text });
      return send(response, 400, {}, errorBody("We could not parse the JSON body of your request."));
    }
    const inputs = Array.isArray(body.input) && typeof body.input[0] !== "number" ? body.input : [body.input];
    const request = { url, headers, body, inputs, status: 0, gone: false };
    const number = requests.push(request);
    response.on("close", () => (request.gone ||= !response.writableFinished));
    maxInFlight = Math.max(maxInFlight, ++inFlight);
    try {
      await reply(request, number, response);
    } finally {
      inFlight--;
      request.status = response.statusCode;
    }
  }

  async function reply(request, number, response) {
    const { body, inputs } = request;
    const planned = await fault(request, number);
    if (planned === "hang") return;
    if (planned === "reset") return void response.socket.resetAndDestroy();
    if (planned?.status !== undefined)
      return send(response, planned.status, planned.headers ?? {}, planned.body ?? errorBody("The API failed."));
    const refused = refusal(request) ?? rateLimited();
    if (refused !== undefined) return send(response, ...refused);
    if (typeof latencyMs === "function") await latencyMs();
    else if (latencyMs + perItemMs > 0) await sleep(latencyMs + perItemMs * inputs.length);
    const data = inputs.map((input, index) => {
      const vector = vectorOf(input, body.dimensions ?? 8);
      return { object: "embedding", index, embedding: body.encoding_format === "base64" ? base64Of(vector) : vector };
    });
    if (planned === "short") data.pop();
    const tokens = inputs.reduce((sum, input) => sum + tokensOf(input), 0);
    send(response, 200, {}, {
      object: "list",
      data: order === "reversed" ? data.reverse() : data,
      model: body.model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    }); // prettier-ignore
  }

  function refusal({ headers, inputs }) {
    if (!headers.authorization && !headers["api-key"]) {
      return [401, {}, errorBody("You didn't provide an API key.", { type: "invalid_request_error", code: null })];
    }
    const wrong = (index, message) => [
      400,
      {},
      errorBody(message, { type: "invalid_request_error", param: `input[${index}]`, code: "invalid_value" }),
    ];
    if (inputs.length === 0 || inputs.length > limits.maxInputs) {
      return [400, {}, errorBody(`'$.input' must have 1 to ${limits.maxInputs} items.`, { param: "input" })];
    }
    for (const [index, input] of inputs.entries()) {
      if (input === "" || isPoison(input))
        return wrong(index, `Invalid 'input[${index}]': this text cannot be embedded.`);
      if (tokensOf(input) > limits.maxItemTokens) {
        return wrong(index, `Invalid 'input[${index}]': maximum context length is ${limits.maxItemTokens} tokens.`);
      }
    }
    const tokens = inputs.reduce((sum, input) => sum + tokensOf(input), 0);
    if (tokens <= limits.maxTokens) return undefined;
    return [
      400,
      {},
      errorBody(`Requested ${tokens} tokens, max ${limits.maxTokens} tokens per request`, {
        code: "max_tokens_per_request",
      }),
    ];
  }

  function rateLimited() {
    if (window === undefined) return undefined;
    const nowMs = performance.now();
    while (starts.length > 0 && starts[0] <= nowMs - window.ms) starts.shift();
    if (starts.length < window.requests) return void starts.push(nowMs);
    const retryAfterMs = Math.ceil(starts[0] + window.ms - nowMs) + 1;
    const headers = { "retry-after-ms": String(retryAfterMs), "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
    return [
      429,
      headers,
      errorBody("Rate limit reached for requests.", { type: "requests", code: "rate_limit_exceeded" }),
    ];
  }

  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return {
    url,
    baseURL: `${url}/v1`,
    /** Embeddings requests in order: `{ url, headers, body, inputs, status, gone }`. */
    requests,
    /** Requests of other routes. */
    others,
    maxInFlight: () => maxInFlight,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

/** A body that is an object of JSON. */
function parsed(text) {
  try {
    const body = JSON.parse(text);
    return typeof body === "object" && body !== null ? body : undefined;
  } catch {
    return undefined;
  }
}

const errorBody = (message, fields = {}) => ({
  error: { message, type: "server_error", param: null, code: null, ...fields },
});

/** A vector as the API sends it when it is asked for base64. */
export function base64Of(vector) {
  const { buffer } = Float32Array.from(vector);
  return Buffer.from(buffer).toString("base64");
}

function send(response, status, headers, body) {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", "x-request-id": "upstream-request", ...headers });
  response.end(JSON.stringify(body));
}
