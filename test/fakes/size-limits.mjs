// Embeddings APIs that refuse requests as too large, each in words of a public report, on any clock. They say what they were asked.

/** How much a request may hold, and how many good texts of how many characters come in a round. */
export const sizeLimits = {
  "1 item": { items: 1, texts: 200, characters: 20 },
  "2 items": { items: 2, texts: 200, characters: 20 },
  "5 items": { items: 5, texts: 200, characters: 20 },
  "10 items": { items: 10, texts: 200, characters: 20 },
  "96 items": { items: 96, texts: 960, characters: 20 },
  "250 items": { items: 250, texts: 2000, characters: 20, maxBatchSize: 1000 },
  "8,192 tokens": { tokens: 8192, texts: 200, characters: 1600 },
  "16,384 tokens": { tokens: 16_384, texts: 1000, characters: 1600 },
  "100 kB": { bytes: 100_000, texts: 200, characters: 2400 },
};

const openai = (message) => JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } }); // prettier-ignore
const words = (say, status = 400) => ({ status, body: (size, limit) => openai(say(size, limit)) });
const mostOf = (limit) => limit.items ?? limit.tokens ?? limit.bytes;
const amountOf = (size, limit) => (limit.items ? size.items : limit.tokens ? size.tokens : size.bytes);
const unitOf = (limit) => (limit.items ? "inputs" : limit.tokens ? "tokens" : "bytes");

/** Wordings that name the limit where they can, and wordings that never do. */
export const wordings = {
  "Vertex through LiteLLM": words((size, limit) => `litellm.BadRequestError: VertexAIException BadRequestError - {"error": {"code": 400, "message": "Unable to submit request because it included too many instances. Unable to submit request because batchSize must be ${mostOf(limit)} but the entered value was ${amountOf(size, limit)}. Update the batchSize value and try again."}}`), // prettier-ignore
  "Vertex, instances": words((size, limit) => `${mostOf(limit)} instance(s) is allowed per prediction. Actual: ${amountOf(size, limit)}`), // prettier-ignore
  "Vertex, error in front": words((size, limit) => `_VertexAIError: 400 ${mostOf(limit)} instance(s) is allowed per prediction. Actual: ${amountOf(size, limit)}`), // prettier-ignore
  DashScope: words((_, limit) => `<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it should not be larger than ${mostOf(limit)}.: input.contents`), // prettier-ignore
  "OpenAI, items": words((size, limit) => `Invalid 'input': array too long. Expected an array with maximum length ${mostOf(limit)}, but got an array with length ${amountOf(size, limit)} instead.`), // prettier-ignore
  "OpenAI, tokens": words((size, limit) => `Requested ${amountOf(size, limit)} ${unitOf(limit)}, max ${mostOf(limit)} ${unitOf(limit)} per request`), // prettier-ignore
  "Mistral, tokens": words((size, limit) => `Too many ${unitOf(limit)} in batch. Max is ${mostOf(limit)} got ${amountOf(size, limit)}`), // prettier-ignore
  Cohere: words((_, limit) => `invalid request: total number of texts must be at most ${mostOf(limit)}`, 422),
  Voyage: words((_, limit) => `The request to the API has too many ${unitOf(limit)}. The batch size limit is ${mostOf(limit)}.`), // prettier-ignore
  Jina: words((_, limit) => `The length of input list exceeds the maximum of ${mostOf(limit)} items`, 422),
  TEI: { status: 413, body: (size, limit) => JSON.stringify({ error: `batch size ${amountOf(size, limit)} > maximum allowed batch size ${mostOf(limit)}`, error_type: "Validation" }) }, // prettier-ignore
  "Mistral, no number of tokens": words(() => "Too many tokens overall, split into more batches."),
  "Mistral, no number of inputs": words(() => "Too many inputs in request, split into more batches."),
  "Azure, no number": words(() => "Too many inputs. The maximum number of inputs is exceeded."),
  "a gateway's code": words(() => "Provider returned error", 400),
  "a number of another thing": words(
    () => "Bad request (trace 4711, shard 3 of 12). See the documentation, section 7.",
  ),
  "the number, off by a factor": words(
    (_, limit) => `Each input may have at most ${Math.ceil(mostOf(limit) / 3)} entries`,
  ),
  "another language": words(() => "请求参数错误：批量大小超过限制", 422),
  "a page of nginx": { status: 413, type: "text/html", body: () => "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx/1.24.0</center>\r\n</body>\r\n</html>\r\n" }, // prettier-ignore
  "an empty body": { status: 413, type: "text/plain", body: () => "" },
};

/** Wordings whose number is that of the limit, for a limit of that unit. */
export function names(wording, limit) {
  if (limit.bytes) return false;
  const ofTokens = ["OpenAI, tokens", "Mistral, tokens", "Voyage"];
  const ofItems = ["Vertex through LiteLLM", "Vertex, instances", "Vertex, error in front", "DashScope", "OpenAI, items", "Cohere", "Voyage", "Jina", "TEI"]; // prettier-ignore
  return (limit.tokens ? ofTokens : [...ofItems, ...ofTokens]).includes(wording);
}

export const tokensOf = (text) => Math.ceil(text.length / 4);

const sizeOf = (input) => ({
  items: input.length,
  tokens: input.reduce((sum, text) => sum + tokensOf(text), 0),
  bytes: Buffer.byteLength(JSON.stringify(input)),
});

const isTooLarge = (size, limit) =>
  size.items > (limit.items ?? Infinity) || size.tokens > (limit.tokens ?? Infinity) || size.bytes > (limit.bytes ?? Infinity); // prettier-ignore

/** `texts` good texts of a round, each with a number of its own and 0.6 to 1.4 of the limit's characters. */
export function textsOf({ texts, characters }, round) {
  return Array.from({ length: texts }, (_, i) => {
    const share = 0.6 + (0.8 * ((i * 7919 + round * 104_729) % 1000)) / 1000;
    return `${round}/${i} ${"some words of a text ".repeat(Math.ceil((characters * share) / 21))}`;
  });
}

/** The fewest requests for these texts, in their order, of at most `maxBatchSize` each. */
export function fewestRequests(texts, limit, maxBatchSize) {
  const nothing = { items: 0, tokens: 0, bytes: 2 };
  let requests = 1;
  let size = nothing;
  for (const text of texts) {
    const bytes = Buffer.byteLength(JSON.stringify(text)) + 1;
    const plus = ({ items, tokens, bytes: sum }) => ({ items: items + 1, tokens: tokens + tokensOf(text), bytes: sum + bytes }); // prettier-ignore
    size = plus(size);
    if (size.items <= maxBatchSize && !isTooLarge(size, limit)) continue;
    requests++;
    size = plus(nothing);
  }
  return requests;
}

/**
 * Answers requests of at most `limit`, after 200 ms and half a millisecond a text; others it refuses in these words. `fault(input)` may give the
 * status and body of another refusal.
 */
export function sizeLimitedApi({ clock, limit, wording, fault = () => undefined }) {
  const counts = { requests: 0, refused: 0, largest: 0 };
  const sleep = (ms) => new Promise((resolve) => void clock.after(ms, resolve));
  const fetch = async (_url, { body }) => {
    const { input } = JSON.parse(body);
    counts.requests++;
    counts.largest = Math.max(counts.largest, input.length);
    const size = sizeOf(input);
    const failed = fault(input) ?? (isTooLarge(size, limit) ? { ...wordings[wording], body: wordings[wording].body(size, limit) } : undefined); // prettier-ignore
    await sleep(failed === undefined ? 200 + 0.5 * input.length : 40);
    if (failed !== undefined) {
      counts.refused++;
      return new Response(failed.body, { status: failed.status, headers: { "content-type": failed.type ?? "application/json" } }); // prettier-ignore
    }
    const data = input.map((text, index) => ({ object: "embedding", index, embedding: [text.length, 1] }));
    const usage = { prompt_tokens: size.tokens, total_tokens: size.tokens };
    return Response.json({ object: "list", data, model: "m", usage });
  };
  return { fetch, counts: () => ({ ...counts }) };
}
