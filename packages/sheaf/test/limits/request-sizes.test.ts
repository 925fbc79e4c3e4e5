import assert from "node:assert/strict";
import { test } from "node:test";
import { coalesce } from "../../dist/adapters/ai-sdk.js";
import { CoalescedEmbeddings } from "../../dist/adapters/langchain.js";
import { openaiEmbeddings } from "../../dist/adapters/openai/index.js";
import { RequestSizes } from "../../dist/limits/request-sizes.js";
import { virtualClock } from "../../dist/testing/index.js";
import { embeddingsOf } from "./rig.ts";

const fakes: any = await import(new URL("../../../../test/fakes/size-limits.mjs", import.meta.url).href);
const { fewestRequests, names, sizeLimitedApi, sizeLimits, textsOf } = fakes;

interface Failed {
  readonly status: number;
  readonly body: string;
}

function rig(
  limit: object = {},
  wording = "an empty body",
  fault?: (input: string[]) => Failed | undefined,
  options: object = {},
) {
  // prettier-ignore
  const clock = virtualClock();
  const api = sizeLimitedApi({ clock, limit, wording, fault });
  return { clock, api, embed: embeddingsOf(api, { clock, ...options }) };
}

const failed = (outcomes: readonly { status: string }[]): number[] =>
  outcomes.flatMap(({ status }, i) => (status === "rejected" ? [i] : []));
const json = (message: string): string => JSON.stringify({ error: { message } });
const shortTexts = (count: number, from = 0): string[] => Array.from({ length: count }, (_, i) => `text ${i + from}`);
/** Refuses a request that holds one of the texts which begin so. */
const faultOf =
  (start: string, { status, body }: Failed) =>
  (input: string[]) =>
    input.some((text) => text.startsWith(start)) ? { status, body } : undefined;

for (const limitName of ["1 item", "10 items", "8,192 tokens", "100 kB"])
  for (const wording of ["OpenAI, tokens", "the number, off by a factor", "a page of nginx"])
    test(`${limitName}, in the words of ${wording}: no good text fails, and the size is learned`, async () => {
      const limit = sizeLimits[limitName];
      const { clock, api, embed } = rig(limit, wording);
      for (let round = 0; round < 3; round++) {
        const before = api.counts().requests;
        const texts = textsOf(limit, round);
        assert.deepEqual(failed(await embed.settle(texts)), []);
        const ratio = (api.counts().requests - before) / fewestRequests(texts, limit, 100);
        // Words that name the limit leave nothing to find out.
        const most = names(wording, limit) ? 1.05 : 2;
        if (round > 0) assert.ok(ratio <= most, `${ratio} times the fewest requests in round ${round}`);
        await clock.sleep(1000);
      }
    });

for (const message of [
  "Input length 9001 exceeds maximum allowed token size 512",
  "Too many input tokens. Max input tokens: 8192, request input token count: 9001",
  "Input id 3 has 9001 tokens, exceeding max 8192 tokens.",
  "batchSize must be 1 but the entered value was 100",
])
  test(`one text that is too long makes no later request smaller: ${message.slice(0, 40)}`, async () => {
    const { clock, api, embed } = rig({}, "", faultOf("LONG", { status: 400, body: json(message) }));
    const requestsOf = async (texts: string[]): Promise<number> => {
      const before = api.counts().requests;
      const outcomes = await embed.settle(texts);
      assert.deepEqual(failed(outcomes), failed(texts.map((text) => ({ status: text.startsWith("LONG") ? "rejected" : "" })))); // prettier-ignore
      await clock.sleep(1000);
      return api.counts().requests - before;
    };
    const before = await requestsOf(shortTexts(500));
    const texts = shortTexts(500, 500).with(250, `LONG ${"word ".repeat(9000)}`);
    assert.ok((await requestsOf(texts)) <= before + 2 * Math.log2(100) + 4);
    assert.equal(await requestsOf(shortTexts(500, 1000)), before);
  });

for (const longs of [1, 5])
  test(`a service that answers 500 for ${longs} of 500 texts fails those alone`, async () => {
    const { api, embed } = rig({}, "", faultOf("LONG", { status: 500, body: json("input is too large to process") }));
    const bad = Array.from({ length: longs }, (_, i) => 50 + 100 * i);
    const texts = shortTexts(500).map((text, i) => (bad.includes(i) ? `LONG ${i}` : text));
    assert.deepEqual(failed(await embed.settle(texts)), bad);
    const runs = api.counts().requests - 5;
    assert.ok(runs <= longs * (2 * Math.log2(100) + 4), `${runs} runs more`);
  });

test("where everything fails with 500 a batch is not taken apart: two single texts, instead of a retry", async () => {
  const { api, embed } = rig({}, "", () => ({ status: 500, body: json("It broke.") }));
  assert.equal(failed(await embed.settle(shortTexts(100))).length, 100);
  assert.equal(api.counts().requests, 4);
});

test("shouldBisect keeps a batch whole, for any error", async () => {
  const fault = faultOf("LONG", { status: 400, body: json("too long") });
  const { api, embed } = rig({}, "", fault, { shouldBisect: () => false });
  assert.equal(failed(await embed.settle(shortTexts(50).with(7, "LONG"))).length, 50);
  assert.equal(api.counts().requests, 1);
});

test("an error that every text gets is the service's: four requests for a batch of 100", async () => {
  for (const passes of [false, true]) {
    let isBroken = !passes;
    const message = json("The model `m` does not exist.");
    const { clock, api, embed } = rig({}, "", () => (isBroken ? { status: 400, body: message } : undefined));
    if (passes) assert.deepEqual(failed(await embed.settle(shortTexts(10))), []);
    await clock.sleep(1000);
    isBroken = true;
    const before = api.counts().requests;
    assert.equal(failed(await embed.settle(shortTexts(100, 100))).length, 100);
    const runs = api.counts().requests - before;
    // Where texts have passed before, the first one is found by halving.
    assert.ok(runs <= (passes ? 4 + Math.ceil(Math.log2(100)) : 4), `${runs}`);
  }
});

test("three bad texts in front of 97 good ones fail alone, though nothing else passes", async () => {
  const { embed } = rig({}, "", faultOf("LONG", { status: 400, body: json("too long") }));
  const texts = shortTexts(100).map((text, i) => (i < 3 ? `LONG ${i}` : text));
  assert.deepEqual(failed(await embed.settle(texts)), [0, 1, 2]);
});

test("LangChain's embedDocuments and the AI SDK's embedMany pass 200 texts to an API that takes ten", async () => {
  const clock = virtualClock();
  const limit = sizeLimits["10 items"];
  const api = sizeLimitedApi({ clock, limit, wording: "a page of nginx" });
  const ask = async (values: string[]): Promise<number[][]> => {
    const response = await api.fetch("http://api.invalid", { body: JSON.stringify({ input: values }) });
    if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
    return (await response.json()).data.map(({ embedding }: any) => embedding);
  };
  const plain = { embedDocuments: ask, embedQuery: async (text: string) => (await ask([text]))[0]! };
  const embeddings = new CoalescedEmbeddings(plain, { clock });
  assert.equal((await embeddings.embedDocuments(textsOf(limit, 0))).length, 200);
  const model = { modelId: "m", maxEmbeddingsPerCall: 100, doEmbed: async ({ values }: any) => ({ embeddings: await ask(values), warnings: [] }) }; // prettier-ignore
  const params = { values: textsOf(limit, 1) };
  assert.equal((await coalesce({ clock }).wrapEmbed({ params, model: model as never })).embeddings.length, 200);
});

test("a cap holds until a request that passes contradicts it, and is found by halving", () => {
  const sizes = new RequestSizes();
  const of = (items: number, tokens = items * 10) => ({ items, tokens, bytes: tokens * 4 });
  assert.equal(sizes.most.items, Infinity);
  sizes.passed(of(50));
  sizes.refused(of(100), of(50), undefined);
  assert.equal(sizes.most.items, 75);
  assert.ok(sizes.tries(of(75)));
  assert.equal(sizes.most.items, 50, "one at a time");
  sizes.tried();
  sizes.passed(of(100));
  assert.equal(sizes.most.items, Infinity);
});

test("a request as large as a refused one that passes contradicts it, and a size that was found is tried again", () => {
  const sizes = new RequestSizes();
  const three = { items: 3, tokens: 42, bytes: 168 };
  const part = { items: 2, tokens: 28, bytes: 112 };
  sizes.passed(three);
  sizes.refused(three, part, undefined);
  assert.equal(sizes.isLimited, true);
  sizes.passed(three);
  assert.deepEqual([sizes.isLimited, sizes.most.items, sizes.most.tokens], [false, Infinity, Infinity]);
  sizes.refused(three, part, undefined);
  for (let tried = 0; tried < 20; tried++) {
    let passed = 0;
    for (; !sizes.tries(three); passed++) sizes.passed(part);
    assert.ok(passed <= 1000, `${passed} requests before a larger one is tried`);
    sizes.refused(three, part, undefined);
    sizes.tried();
  }
});

/** An API that takes so many tokens a request and tells its usage so. */
function countingRig(charsPerToken: number, most: number, usage: (tokens: number) => unknown, concurrency?: number) {
  const clock = virtualClock();
  const log: { readonly texts: number; readonly isRefused: boolean }[] = [];
  const create = async ({ input }: { input: string[] }) => {
    await clock.sleep(100);
    const tokens = input.reduce((sum, text) => sum + Math.ceil(text.length / charsPerToken), 0);
    log.push({ texts: input.length, isRefused: tokens > most });
    if (tokens > most) throw Object.assign(new Error("too large"), { status: 400 });
    return { data: input.map((_, index) => ({ index, embedding: [1] })), usage: { total_tokens: usage(tokens) } };
  };
  const embed = openaiEmbeddings({ embeddings: { create } } as never, { model: "m", clock, concurrency });
  return { embed, log };
}

for (const usage of [() => 1, () => 0, () => undefined, (tokens: number) => tokens] as const)
  test(`at an API of 2000 tokens a request that counts ${String(usage)}, requests stay nearly full`, async () => {
    const { embed, log } = countingRig(4, 2000, usage);
    for (let round = 0; round < 10; round++)
      await embed.many(Array.from({ length: 200 }, (_, i) => `${round * 200 + i} ${"some words ".repeat(60)}`));
    const last = log.slice(-40);
    assert.ok(last.every(({ isRefused }) => !isRefused));
    assert.ok(last.length / last.reduce((sum, { texts }) => sum + texts, 0) < 1 / 9, JSON.stringify(log));
  });

test("a reply's count corrects the requests that go next, also those of texts that wait already", async () => {
  // Dense code: 2.5 characters a token, where the estimate is 3.
  const { embed, log } = countingRig(2.5, 300_000, (tokens) => tokens, 2);
  await embed.many(Array.from({ length: 2000 }, (_, i) => `${i}${"if (a[i]!=b[j]) {x+=y*3;z--;}\n".repeat(330)}`));
  assert.equal(log.filter(({ isRefused }) => isRefused).length, 2, "those that went before the first reply");
});
