import assert from "node:assert/strict";
import { test } from "node:test";
import { estimateTokens, openaiEmbeddings, OpenAIError, openaiFetch } from "../../dist/adapters/openai/index.js";
import { errorHints, inputIndexOf, retryAfterMsOf } from "../../dist/adapters/api-client/api-error.js";
import { greedy } from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { assertCode, endsOf, statuses, values, watch, watchAll } from "../support/rig.js";
import { listening } from "./http/fronts.ts";
import { apiError, replyTo, scriptedClient } from "./scripted-client.js";

function rig(options: Record<string, unknown> = {}) {
  const clock = manualClock();
  const client = scriptedClient();
  const embed = openaiEmbeddings(client, { model: "tiny", clock, policy: greedy(), ...options } as never);
  const { requests } = client;
  const inputs = (): unknown[] => requests.map(({ body }) => body.input);
  /** Ends a request, with a vector for each input unless told otherwise. */
  const answer = (index: number, ...outcome: [unknown?]): Promise<void> => {
    requests[index]!.answer(...outcome);
    return clock.settle();
  };
  const answerAll = (): Promise<void> => {
    for (const request of requests) request.answer();
    return clock.settle();
  };
  /** Calls that have been sent. */
  const sent = async (batch: Iterable<unknown>) => {
    const calls = watchAll(embed, batch as string[]);
    await clock.settle();
    return calls;
  };
  const asked = async (text: string) => (await sent([text]))[0]!;
  return { clock, embed, inputs, requests, answer, answerAll, sent, asked };
}
const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => "x".repeat(i + 1));

test("concurrent calls share requests of 100 and each gets its own vector, whatever the order of the reply", async () => {
  const { inputs, sent, answerAll } = rig();
  const calls = await sent(texts(250));
  assert.deepEqual(
    inputs().map((input) => (input as string[]).length),
    [100, 100, 50],
  );
  await answerAll();
  assert.deepEqual(
    values(calls),
    texts(250).map((text) => [text.length]),
  );
});

test("a request carries the model and the batcher's parameters, and tells the client not to retry", async () => {
  const { clock, embed, requests } = rig({ dimensions: 256, user: "u", parameters: { input_type: "query" } });
  watch(embed("a"));
  await clock.settle();
  const { body, options } = requests[0]!;
  assert.deepEqual(body, {
    model: "tiny",
    dimensions: 256,
    user: "u",
    input_type: "query",
    encoding_format: "base64",
    input: ["a"],
  });
  assert.equal(options.maxRetries, 0);
});

test("a batch stays within the tokens of a request, and a text above its own limit is refused before it is sent", async () => {
  const { clock, embed, inputs } = rig({ maxBatchWeight: 10, maxItemWeight: 8, weigh: (text: string) => text.length });
  watchAll(embed, ["aaaa", "bbbb", "cccc", "dddd"]);
  const large = watch(embed("x".repeat(9)));
  const larger = watch(embed("x".repeat(11)));
  await clock.settle();
  assert.deepEqual(inputs(), [
    ["aaaa", "bbbb"],
    ["cccc", "dddd"],
  ]);
  assert.match(assertCode(large, "ITEM_TOO_LARGE").message, /the item weighs 9, and maxItemWeight is 8\./);
  assertCode(larger, "ITEM_TOO_LARGE");
});

test("a text that the API never answers is found once its request was given up, where others got through lately", async () => {
  for (const othersPass of [true, false]) {
    const { clock, requests, answer, asked, sent } = rig({ runTimeoutMs: 1000 });
    const first = await asked("first");
    await answer(0);
    await clock.advance(2000);
    const calls = await sent(["aaaa", "bbb", "hang", "c"]);
    if (othersPass) {
      const other = await asked("other");
      await answer(2);
      assert.deepEqual([first.value, other.value], [[5], [5]]);
    }
    for (let sent = requests.length, at = 0; at < 80; at++) {
      await clock.advance(50);
      for (; sent < requests.length; sent++)
        if (!(requests[sent]!.body.input as string[]).includes("hang")) requests[sent]!.answer();
      await clock.settle();
    }
    if (othersPass) {
      assert.deepEqual([calls[0]!.value, calls[1]!.value, calls[3]!.value], [[4], [3], [1]]);
      assertCode(calls[2]!, "RUN_TIMEOUT");
    } else {
      for (const call of calls) assertCode(call, "RUN_TIMEOUT");
      assert.equal(requests.length, 2);
    }
  }
});

test("an empty text is refused at once, and no other fails with it", async () => {
  const { embed, answer, asked } = rig();
  const empty = watch(embed(""));
  const fine = await asked("a");
  await answer(0);
  assertCode(empty, "INVALID_INPUT");
  assert.deepEqual(fine.value, [1]);
});

test("equal texts that wait are sent once; token ids are never mistaken for a text", async () => {
  const { inputs, answer, sent } = rig();
  const calls = await sent(["a", "a", [1, 2], [1, 2], "[1,2]"]);
  assert.deepEqual(inputs(), [["a", [1, 2], [1, 2], "[1,2]"]]);
  await answer(0);
  assert.deepEqual(statuses(calls), Array(5).fill("fulfilled"));
});

test("a 400 that names its input fails that caller with the API's error; the others go again at once", async () => {
  const { inputs, answer, sent } = rig();
  const calls = await sent(["a", "bb", "poison", "dddd"]);
  const refused = apiError(400, { param: "input[2]" });
  await answer(0, refused);
  assert.deepEqual(inputs()[1], ["a", "bb", "dddd"]);
  await answer(1);
  assert.equal(calls[2]!.reason, refused);
  assert.deepEqual(values(calls), [[1], [2], undefined, [4]]);
});

test("429 pauses everything as long as the API asks; then its texts go first, and share a request with those that came meanwhile", async () => {
  const { clock, embed, requests, inputs, answer, sent } = rig();
  const calls = await sent(["a", "bb"]);
  await answer(0, apiError(429, { headers: { "retry-after-ms": "700" } }));
  for (let i = 0; i < 7; i++) {
    calls.push(watch(embed("c".repeat(i + 3))));
    await clock.advanceAsync(100 - (i === 6 ? 1 : 0));
  }
  assert.equal(requests.length, 1);
  await clock.advanceAsync(1);
  assert.deepEqual(inputs()[1], ["a", "bb", ...Array.from({ length: 7 }, (_, i) => "c".repeat(i + 3))]);
  for (const request of requests.slice(1)) request.answer();
  await clock.settle();
  assert.deepEqual(statuses(calls), Array(9).fill("fulfilled"));
});

test("a batch that goes again counts on the rate limit as one more request, and the bucket does not start full", async () => {
  const { clock, requests, answer, sent } = rig({ maxBatchSize: 1, rateLimit: { runs: 2, perMs: 60_000 } });
  const calls = await sent(["a", "bb"]);
  assert.equal(requests.length, 1, "nobody said that the API has more left");
  requests[0]!.answer(apiError(429, { headers: { "retry-after-ms": "10" } }));
  await clock.advanceAsync(29_999);
  assert.equal(requests.length, 1, "the first of the minute's two went into the refusal");
  await clock.advanceAsync(1);
  assert.deepEqual(requests[1]!.body.input, ["a"]);
  requests[1]!.answer();
  await clock.advanceAsync(30_000);
  assert.equal(requests.length, 2, "after a 429 that tells nothing of the rest a period is counted 2 % longer");
  await clock.advanceAsync(1200);
  await answer(2);
  assert.deepEqual(statuses(calls), Array(2).fill("fulfilled"));
});

test("a longer pause reported to another batch holds a batch back that was to go again sooner", async () => {
  const { clock, requests, sent } = rig({ maxBatchSize: 1 });
  await sent(["a", "b"]);
  requests[0]!.answer(apiError(429, { headers: { "retry-after-ms": "100" } }));
  requests[1]!.answer(apiError(429, { headers: { "retry-after": "2" } }));
  await clock.advanceAsync(1999);
  assert.equal(requests.length, 2);
  await clock.advanceAsync(1);
  assert.equal(requests.length, 4);
});

const reset = new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNRESET" }) });

for (const [name, error] of [
  ["500", apiError(500)],
  ["a lost connection", reset],
] as const) {
  test(`${name}: requests of 50, 50, 1, 1 texts, at growing distances, then every caller gets the error`, async () => {
    const sizes = [50, 50, 1, 1];
    const { clock, embed, requests } = rig({ maxRetries: 2 });
    const calls = watchAll(embed, texts(50));
    const startedAtMs: number[] = [];
    for (let i = 0; i < sizes.length; i++) {
      await clock.advanceAsync([0, 500, 1000, 500][i]!);
      assert.equal(requests.length, i + 1);
      startedAtMs.push(clock.now());
      requests[i]!.answer(error);
    }
    await clock.advanceAsync(60_000);
    assert.deepEqual(
      requests.map(({ body }) => body.input.length),
      sizes,
    );
    assert.ok(calls.every(({ reason }) => reason === error));
  });
}

test("a refused key is neither retried nor bisected", async () => {
  const { clock, requests, sent } = rig();
  const calls = await sent(texts(10));
  requests[0]!.answer(apiError(401));
  await clock.advanceAsync(60_000);
  assert.equal(requests.length, 1);
  assert.deepEqual(statuses(calls), Array(10).fill("rejected"));
});

test("too few vectors, or two for one input: RESULT_COUNT for every caller, and no second request", async () => {
  const short = (input: string[]): object => ({ data: (replyTo(input) as { data: object[] }).data.slice(1) });
  const doubled = (input: string[]): object => ({ data: input.map(() => ({ index: 0, embedding: [1] })) });
  for (const wrong of [short, doubled]) {
    const { clock, requests, sent } = rig();
    const calls = await sent(["a", "bb", "ccc"]);
    requests[0]!.answer(wrong(["a", "bb", "ccc"]));
    await clock.advanceAsync(60_000);
    assert.equal(requests.length, 1);
    for (const call of calls) assertCode(call, "RESULT_COUNT");
  }
});

test("a batch that everyone has left stops waiting for its retry", async () => {
  const { clock, embed, requests } = rig();
  const controller = new AbortController();
  const call = watch(embed("a", { signal: controller.signal }));
  await clock.settle();
  requests[0]!.answer(apiError(503, { headers: { "retry-after": "10" } }));
  await clock.advanceAsync(100);
  controller.abort(new Error("gone"));
  await clock.advanceAsync(60_000);
  assert.equal(requests.length, 1);
  assert.equal((call.reason as Error).message, "gone");
  assert.equal(embed.stats().inFlight, 0);
});

test("usage adds up what the API counted", async () => {
  const { embed, sent, answerAll } = rig({ maxBatchSize: 2 });
  await sent(["a", "bb", "ccc"]);
  await answerAll();
  assert.deepEqual(embed.usage(), { requests: 2, promptTokens: 6, totalTokens: 6 });
});

test("base64 and floats give the same vector", async () => {
  const vector = [0.5, -1.25, 3];
  const bytes = Buffer.from(Float32Array.from(vector).buffer).toString("base64");
  for (const embedding of [vector, bytes]) {
    const { answer, asked } = rig();
    const call = await asked("a");
    await answer(0, { data: [{ index: 0, embedding }] });
    assert.deepEqual(call.value, vector);
  }
});

test("openaiFetch sends what openai's client sends and throws its errors, whose headers no log shows", async () => {
  const seen: any[] = [];
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    seen.push([url, init.headers, JSON.parse(String(init.body))]);
    const error = { message: "Wrong key.", code: "invalid_api_key", type: "auth", param: null };
    return new Response(JSON.stringify({ error }), { status: 401, headers: { "x-secret": "s" } });
  };
  const client = openaiFetch({
    baseURL: "http://localhost/v1/",
    apiKey: "sk-1",
    headers: { "openai-organization": "o" },
    fetch: fetch as typeof globalThis.fetch,
  });
  const embed = openaiEmbeddings(client, { model: "tiny" });
  await assert.rejects(embed("a"), (error) => {
    assert.ok(error instanceof OpenAIError);
    assert.equal(error.status, 401);
    assert.equal(error.code, "invalid_api_key");
    assert.match(error.message, /^401 Wrong key\./);
    assert.ok(!JSON.stringify(error).includes("headers"));
    return true;
  });
  assert.equal(seen[0][0], "http://localhost/v1/embeddings");
  assert.equal(seen[0][1].authorization, "Bearer sk-1");
  assert.deepEqual(seen[0][2], { model: "tiny", encoding_format: "base64", input: ["a"] });
});

test("param names an input in every form that APIs use, and nothing else does", () => {
  const known = { "input[3]": 3, "input.1": 1, "$.input[12]": 12, "body.input.4.text": 4, "input[0].text": 0 };
  for (const [param, index] of Object.entries(known)) assert.equal(inputIndexOf(param), index, param);
  for (const param of ["input", "inputs[1]", "my_input[1]", "input[x]", "input[1]x", 3, null])
    assert.equal(inputIndexOf(param), undefined, String(param));
});

test("Retry-After is read in milliseconds, seconds and as a date, from every shape of headers, at most two minutes", () => {
  assert.equal(retryAfterMsOf({ "retry-after-ms": "50", "retry-after": "1" }), 50);
  assert.equal(retryAfterMsOf(new Headers({ "retry-after": "1.5" })), 1500);
  assert.equal(retryAfterMsOf({ "retry-after": "86400" }), 120_000);
  assert.equal(retryAfterMsOf({ "retry-after": new Date(Date.now() + 3_600_000).toUTCString() }), 120_000);
  assert.equal(retryAfterMsOf({ "retry-after": new Date(0).toUTCString() }), 1);
  assert.equal(retryAfterMsOf({ "retry-after": "soon" }), undefined);
  assert.equal(retryAfterMsOf(undefined), undefined);
});

test("hints are found in the errors of openai, of the AI SDK and of axios; 429 without a time means a second", () => {
  const headers = { "retry-after-ms": "9" };
  const hints = { status: 429, retryAfterMs: 9, itemIndex: undefined };
  assert.deepEqual(errorHints({ status: 429, headers: new Headers(headers) }), hints);
  assert.deepEqual(errorHints({ statusCode: 429, responseHeaders: headers }), hints);
  assert.deepEqual(errorHints({ response: { status: 429, headers } }), hints);
  assert.equal(errorHints({ status: 429 }).retryAfterMs, 1000);
  assert.equal(errorHints({ statusCode: 400, data: { error: { param: "input.2" } } }).itemIndex, 2);
});

test("tokens are estimated rather too high, and never 0", () => {
  assert.equal(estimateTokens("a"), 1);
  assert.equal(estimateTokens("The quick brown fox"), 7);
  assert.equal(estimateTokens("日本語"), 3);
  assert.equal(estimateTokens([1, 2, 3]), 3);
});

for (const [options, message] of [
  [{ model: "" }, /model must be the name of a model, got ""/],
  [{ dimensions: 1.5 }, /dimensions must be an integer >= 1, got 1.5/],
  [{ maxRetries: -1 }, /maxRetries must be an integer >= 0, got -1/],
  [{ encoding: "hex" }, /encoding must be "base64" or "float" or "default", got "hex"/],
  [{ maxBatchSize: 5000 }, /maxBatchSize must be at most 2048.*got 5000/],
  [{ maxBatchSise: 5 }, /unknown option maxBatchSise; did you mean maxBatchSize\?/],
] as const) {
  test(`wrong options are refused: ${JSON.stringify(options)}`, () => {
    assert.throws(() => openaiEmbeddings(scriptedClient(), { model: "tiny", ...options } as never), message);
  });
}

test("anything but a client is refused", () => {
  assert.throws(() => openaiEmbeddings({} as never, { model: "tiny" }), /needs a client with embeddings.create/);
  assert.throws(() => openaiFetch({ baseURL: "nowhere" }), /baseURL must be a URL, got "nowhere"/);
});

test("openaiFetch follows no redirect: no key goes to another address", async (t) => {
  let followed = 0;
  const elsewhere = await listening(t, (_request, _body, response) => (followed++, response.end("{}")));
  const moved = await listening(t, (_request, _body, response) =>
    response.writeHead(307, { location: elsewhere }).end(),
  );
  const embed = openaiEmbeddings(openaiFetch({ baseURL: moved, headers: { "api-key": "secret" } }), { model: "m" });
  await assert.rejects(embed("a"), { name: "OpenAIError", status: 307 });
  assert.equal(followed, 0);
});

test("an error inside a reply of status 200 counts as what it says: 429 pauses, and the texts go again", async () => {
  const { clock, embed, requests, answer, asked } = rig();
  const call = await asked("a");
  await answer(0, { error: { message: "Rate limit exceeded", code: 429 } });
  assert.equal(embed.stats().rateLimit!.refused, 1);
  assert.equal(requests.length, 1);
  await clock.advanceAsync(2000);
  await answer(1);
  assert.deepEqual(call.value, [1]);
  const broken = await asked("bb");
  // It is tried three times.
  for (let at = 2; at < 8 && broken.status === "pending"; at++) {
    requests[at]?.answer({ error: "No endpoints found" });
    await clock.advanceAsync(60_000);
  }
  assert.match((broken.reason as Error).message, /^502 No endpoints found/);
});

test("base64 of float64 is read as what it is, with and without dimensions", async () => {
  const vector = Array.from({ length: 64 }, (_, i) => Math.sin(i + 1) / 3);
  const few = [0.5, -1.25, 3, 0.25, 0.5, 0.75, 1, 2];
  for (const [numbers, dimensions] of [
    [vector, undefined],
    [few, undefined],
    [[0.1], 1],
  ] as const) {
    const { answer, asked } = rig({ dimensions });
    const call = await asked("a");
    const embedding = Buffer.from(Float64Array.from(numbers).buffer).toString("base64");
    await answer(0, { data: [{ index: 0, embedding }] });
    assert.deepEqual(call.value, [...numbers]);
  }
});

test("an input that is neither a text nor token ids is INVALID_INPUT", async () => {
  const { embed } = rig();
  for (const input of [undefined, null, 3, {}]) await assert.rejects(embed(input as never), { code: "INVALID_INPUT" });
});

test("openaiFetch keeps the query of its baseURL", async () => {
  for (const [baseURL, expected] of [
    [
      "http://localhost/openai/deployments/d/?api-version=2024-10-21",
      "http://localhost/openai/deployments/d/embeddings?api-version=2024-10-21",
    ],
    ["http://localhost/v1//", "http://localhost/v1/embeddings"],
  ] as const) {
    const urls: unknown[] = [];
    const fetch = async (url: unknown) => (urls.push(url), Response.json({ data: [{ index: 0, embedding: [1] }] }));
    await openaiEmbeddings(openaiFetch({ baseURL, fetch: fetch as never }), { model: "m" })("a");
    assert.deepEqual(urls, [expected]);
  }
});

test("a reply that is no JSON names the address, and one that never ends is given up", async () => {
  const baseURL = "https://wrong.example/v2";
  const page = async () => new Response("<!doctype html><title>Welcome</title>");
  await assert.rejects(
    openaiEmbeddings(openaiFetch({ baseURL, fetch: page }), { model: "m" })("a"),
    /https:\/\/wrong\.example\/v2\/embeddings replied with something other than JSON \("<!doctype html>.*baseURL/,
  );
  let sent = 0;
  let isCancelled = false;
  const endless = async () =>
    new Response(
      new ReadableStream({
        pull: (controller) => (sent++, controller.enqueue(Buffer.alloc(65_536, "["))),
        cancel: () => void (isCancelled = true),
      }),
    );
  const client = openaiFetch({ baseURL, fetch: endless });
  await assert.rejects(openaiEmbeddings(client, { model: "m" })("a"), /cannot be read: more than 1179648 bytes/);
  assert.ok(sent < 25 && isCancelled, `${sent} pieces`);
});

for (const [name, refuse, told] of [
  ["a 403", () => Response.json({ error: { message: "policy" } }, { status: 403 }), 403],
  ["a reset", () => Promise.reject(reset), "fetch failed"],
] as const)
  test(`${name} for one text while others of the key get through is that text's: the others have their vectors`, async () => {
    const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
      const { input } = JSON.parse(String(init?.body)) as { input: string[] };
      if (input.includes("against the policy")) return refuse();
      const data = input.map((text, index) => ({ index, embedding: [text.length] }));
      return Response.json({ data, usage: { prompt_tokens: 1, total_tokens: 1 } });
    };
    const embed = openaiEmbeddings(openaiFetch({ baseURL: "http://127.0.0.1:1/v1", apiKey: "k", fetch }), {
      model: "m",
      encoding: "float",
      maxRetries: 1,
    });
    assert.deepEqual(await embed("first"), [5]);
    const texts = ["a", "bb", "against the policy", "ccc", "dddd"];
    const ends = endsOf(await embed.settle(texts));
    const { status, message } = ends[2];
    assert.deepEqual(ends.with(2, status ?? message), [[1], [2], told, [3], [4]]);
    await embed.close();
  });

for (const [name, refuses] of [
  [
    "refuses base64",
    (format: unknown) =>
      format === "base64" && apiErrorOf(400, "does not support parameters: {'encoding_format': 'base64'}"),
  ],
  [
    "refuses the parameter",
    (format: unknown) =>
      format !== undefined && apiErrorOf(422, '["body","encoding_format"]: extra inputs are not permitted'),
  ],
  ["answers base64 with no data", (format: unknown) => format === "base64" && { data: [] }],
] as const)
  // prettier-ignore
  for (const encoding of ["base64", "float", "default"] as const)
    for (const isOpenai of [false, true])
      test(`a gateway that ${name} is asked again once and remembered: ${encoding}, ${isOpenai ? "openai's client" : "a plain one"}`, async () => {
        let requests = 0;
        const create = async ({ input, encoding_format: format }: { input: string[]; encoding_format?: string }) => {
          requests++;
          // Without one openai's client sends base64 by itself.
          const answer = refuses(format ?? (isOpenai ? "base64" : undefined));
          if (answer instanceof Error) throw answer;
          return answer || { data: input.map((text, index) => ({ index, embedding: [text.length] })) };
        };
        const embed = openaiEmbeddings({ embeddings: { create } } as never, { model: "m", encoding });
        if (isOpenai && (encoding === "default" || name === "refuses the parameter"))
          return assert.rejects(embed("a"));
        assert.deepEqual(await embed("aaa"), [3]);
        const first = requests;
        assert.ok(first <= (isOpenai ? 3 : 2), `${first} requests`);
        assert.deepEqual(await embed("aa"), [2]);
        assert.equal(requests, first + 1);
      });

function apiErrorOf(status: number, message: string): Error {
  return Object.assign(new Error(`${status} ${message}`), { status });
}
