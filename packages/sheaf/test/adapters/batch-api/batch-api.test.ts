import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { batchApi as fakeApi, type BatchFault, type FakeBatchApi } from "../../../../../test/fakes/batch-api.mjs";
import {
  batchApi,
  BatchLineError,
  type BatchApi,
  type BatchApiOptions,
} from "../../../dist/adapters/batch-api/index.js";

type Reply = OpenAI.CreateEmbeddingResponse;
type Options = Partial<BatchApiOptions<string, Reply, number[]>>;

const { vectorOf }: { vectorOf: (text: string) => number[] } = await import(
  new URL("../../../../../test/fakes/embedding-api.mjs", import.meta.url).href
);
const texts = (count: number): string[] => Array.from({ length: count }, (_, n) => `text ${n}`);

/** A fake provider, and a batcher over it. */
async function rig(
  t: TestContext,
  fake: Parameters<typeof fakeApi>[0] = {},
  options: Options = {},
): Promise<{ api: FakeBatchApi; embed: BatchApi<string, number[]> }> {
  const api = await fakeApi(fake);
  t.after(() => api.close());
  return { api, embed: batcherOf(api, options) };
}

const batcherOf = (api: FakeBatchApi, options: Options = {}): BatchApi<string, number[]> =>
  batchApi(new OpenAI({ baseURL: api.url, apiKey: "none" }), {
    endpoint: "/v1/embeddings",
    body: (input: string) => ({ model: input.startsWith("other") ? "other" : "m", input }),
    result: ({ data }: Reply) => data[0]!.embedding,
    pollMs: 5,
    ...options,
  });

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

const folderOf = (t: TestContext): string => {
  const folder = mkdtempSync(join(tmpdir(), "sheaf-batch-api-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};
/** Of its batches, the largest first: files go out at the same time. */
const sizesOf = ({ batches }: FakeBatchApi): number[] =>
  [...batches.values()].map(({ lines }) => lines.length).sort((a, b) => b - a);

/** Resolves when the fake gets its n-th request of a kind. */
function requests(): {
  onRequest: (kind: string, n: number) => void;
  come: (kind: string, n?: number) => Promise<unknown>;
} {
  const events = new EventTarget();
  return {
    onRequest: (kind, n) => void events.dispatchEvent(new Event(`${kind} ${n}`)),
    come: (kind, n = 1) => once(events, `${kind} ${n}`),
  };
}

test("a list goes when its last line is in, each caller gets its own result, and the provider keeps no file", async (t) => {
  const { api, embed } = await rig(t);
  const [vectors, twice] = await Promise.all([embed.many([...texts(30), "text 3"]), embed("text 3")]);
  assert.deepEqual(
    vectors,
    [...texts(30), "text 3"].map((text) => vectorOf(text)),
  );
  assert.deepEqual(twice, vectorOf("text 3"));
  assert.deepEqual(sizesOf(api), [30]);
  assert.deepEqual(embed.stats().lines, { submitted: 30, done: 30, failed: 0 });
  const [batch] = api.batches.values();
  assert.match((batch!.metadata as { sheaf_sha256: string }).sheaf_sha256, /^[\w-]{43}$/);
  await embed.close();
  assert.equal(api.files.size, 0);
});

test("a single call goes maxWaitMs after it came, or with a flush", async (t) => {
  const { api, embed } = await rig(t, {}, { maxWaitMs: 1 });
  assert.deepEqual(await embed("text 0"), vectorOf("text 0"));
  const patient = batcherOf(api, { maxWaitMs: 1e8 });
  const calls = [patient("text 1"), patient("text 2")];
  await patient.flush();
  assert.deepEqual(
    await Promise.all(calls),
    ["text 1", "text 2"].map((text) => vectorOf(text)),
  );
  assert.deepEqual(sizesOf(api), [2, 1]);
});

test("map sends what it has when its source ends, and fills files past its window for small batches", async (t) => {
  const { api, embed } = await rig(t, {}, { maxBatchSize: 5000 });
  const vectors = await all(embed.map(texts(6000)));
  assert.deepEqual(vectors.at(-1), vectorOf("text 5999"));
  // The smaller file may be uploaded first.
  assert.deepEqual(sizesOf(api).sort((a, b) => b - a), [5000, 1000]); // prettier-ignore
  await assert.rejects(all(embed.map("ab" as never)), /items must be an iterable/);
  await assert.rejects(embed.many("ab" as never), /items must be an array/);
});

test("a file keeps to lines, bytes and one model; open batches keep to concurrency and to the tokens that may wait", async (t) => {
  const { api, embed } = await rig(t, {}, { maxBatchSize: 10 });
  await embed.many([...texts(25), "other 1"]);
  assert.deepEqual(sizesOf(api), [10, 10, 5, 1]);

  const bytes = await rig(t, {}, { maxFileBytes: 1000 });
  await bytes.embed.many(texts(20));
  assert.ok(sizesOf(bytes.api).every((lines) => lines > 1 && lines < 8));
  await assert.rejects(bytes.embed("x".repeat(1000)), { code: "ITEM_TOO_LARGE" });

  for (const bound of [
    { concurrency: 2, maxBatchSize: 3 },
    { maxTokensWaiting: 30, weigh: () => 5 },
  ]) {
    let most = 0;
    const onRequest = (): void => {
      const waiting = [...limited.api.batches.values()].filter(({ status }) => status === "in_progress");
      most = Math.max(
        most,
        waiting.reduce((sum, { lines }) => sum + lines.length, 0),
      );
    };
    const limited = await rig(t, { onRequest }, bound);
    await limited.embed.many(texts(24));
    assert.equal(most, 6);
  }
});

test("lines that fail or expire are tried once more, then fail with the provider's reason; asking again sends them anew", async (t) => {
  const { api, embed } = await rig(t, { outcome: (n) => (n === 1 ? "expired" : "completed") });
  const outcomes = await embed.settle(["a bad one", ...texts(9)]);
  assert.deepEqual(sizesOf(api), [10, 6]);
  const [bad, ...good] = outcomes;
  const { reason } = bad as PromiseRejectedResult;
  assert.ok(reason instanceof BatchLineError);
  assert.deepEqual([reason.message, reason.status], ["The input is bad.", 400]);
  assert.ok(good.every(({ status }) => status === "fulfilled"));
  assert.deepEqual([...api.paid.values()], Array(9).fill(1));
  await assert.rejects(embed.many(["a bad one"]), /The input is bad/);
  assert.deepEqual(sizesOf(api), [10, 6, 1, 1]);

  const failing = await rig(t, { outcome: () => "failed" });
  await assert.rejects(failing.embed.many(["a"]), /no result for this line: The fake refuses this file/);
  assert.deepEqual(sizesOf(failing.api), [1, 1]);
});

test("lost replies, 500 and 429 only delay; a batch that was made nevertheless is found and not made again", async (t) => {
  for (const fault of ["late", "done-reset", { done: 500 }, "reset", 429, 503] as const) {
    const kinds = ["upload", "create", "retrieve", "content", "delete"];
    const { api, embed } = await rig(t, { fault: (kind, n) => (n === 1 && kinds.includes(kind) ? fault : undefined) });
    assert.deepEqual(
      await embed.many(texts(3)),
      texts(3).map((text) => vectorOf(text)),
    );
    assert.equal(api.batches.size, 1, JSON.stringify(fault));
    await embed.close();
  }
  const cut = await rig(t, { fault: (kind, n) => (kind === "content" && n < 3 ? "cut" : undefined) });
  assert.deepEqual(
    await cut.embed.many(texts(50)),
    texts(50).map((text) => vectorOf(text)),
  );
});

test("a refused key fails the callers at once, with the provider's error", async (t) => {
  const { api, embed } = await rig(t, { fault: () => 401 });
  await assert.rejects(embed.many(texts(3)), { status: 401 });
  assert.equal(api.counts["upload"], 1);
});

test("a batch is cancelled when nobody waits for any of its lines, and its files go", async (t) => {
  const { onRequest, come } = requests();
  const { api, embed } = await rig(t, { outcome: () => "held", onRequest });
  const one = new AbortController();
  const polled = come("retrieve");
  const cancelled = come("cancel");
  const calls = [
    embed.many(texts(3), { signal: one.signal }),
    embed.many(texts(4), { timeoutMs: 1e6, signal: one.signal }),
  ];
  await polled;
  assert.equal(api.counts["cancel"], undefined);
  one.abort(new Error("left"));
  for (const call of calls) await assert.rejects(call, /left/);
  await cancelled;
  // The input file is deleted when the batch is over.
  while (api.files.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(
    [...api.batches.values()].map(({ status }) => status),
    ["cancelled"],
  );
  await embed.close();
});

test("close with a grace cancels without a folder; with one, batches go on and the next process gets their results", async (t) => {
  const without = requests();
  const first = await rig(t, { outcome: () => "held", onRequest: without.onRequest });
  const polled = without.come("retrieve");
  const call = first.embed.many(["a"]);
  call.catch(() => undefined);
  await polled;
  await first.embed.close({ graceMs: 1 });
  await assert.rejects(call, { code: "CLOSED" });
  assert.equal(first.api.counts["cancel"], 1);

  const folder = folderOf(t);
  const { onRequest, come } = requests();
  const { api, embed } = await rig(t, { runMs: 100, onRequest }, { folder, maxBatchSize: 5 });
  await embed.ready();
  await assert.rejects(batcherOf(api, { folder }).ready(), /belongs to process/);
  const created = come("create", 2);
  const lost = embed.many(texts(10));
  lost.catch(() => undefined);
  await created;
  await embed.close({ graceMs: 0 });
  await assert.rejects(lost, { code: "CLOSED" });
  assert.doesNotMatch(readFileSync(join(folder, "batches"), "utf8"), /text/);
  const next = batcherOf(api, { folder });
  assert.deepEqual(
    await next.many(texts(12)),
    texts(12).map((text) => vectorOf(text)),
  );
  assert.deepEqual([...api.paid.values()], Array(12).fill(1));
  // Until it is closed, what was handed out is not paid again.
  assert.deepEqual(
    await next.many(texts(2)),
    texts(2).map((text) => vectorOf(text)),
  );
  assert.equal(api.paid.get("text 0"), 1);
  await next.close();
  assert.equal(api.files.size, 0);
});

test("a successor reads what was sent once more where it is, and a refused upload fails only its own lines", async (t) => {
  const folder = folderOf(t);
  const { onRequest, come } = requests();
  const fault = (kind: string, n: number): BatchFault => (kind === "upload" && n === 3 ? 400 : undefined);
  const outcome = (n: number): "expired" | "completed" => (n === 1 ? "expired" : "completed");
  const { api, embed } = await rig(t, { runMs: 100, fault, outcome, onRequest }, { folder });
  const again = come("create", 2);
  const lost = embed.many(texts(10));
  lost.catch(() => undefined);
  await again;
  await embed.close({ graceMs: 0 });
  const next = batcherOf(api, { folder });
  const outcomes = await next.settle([...texts(10), "a new one"]);
  assert.deepEqual(
    outcomes.slice(0, 10).map((outcome) => outcome.status === "fulfilled" && outcome.value),
    texts(10).map((text) => vectorOf(text)),
  );
  assert.equal((outcomes[10] as PromiseRejectedResult).reason.status, 400);
  assert.deepEqual([api.batches.size, api.counts["cancel"]], [2, undefined]);
  await next.close();
  assert.equal(api.files.size, 0);
});

test("what a provider's batch cannot keep is refused by name", async (t) => {
  const { embed } = await rig(t);
  await assert.rejects(embed("a", { priority: "bulk" }), /priority must be left out/);
  await assert.rejects(embed.many(["a"], { alone: true }), /alone must be left out/);
  const client = new OpenAI({ apiKey: "none" });
  const body = (input: string): object => ({ input });
  const wrong =
    (options: object, given: unknown = client) =>
    () =>
      batchApi(given as never, { endpoint: "/v1/x", body, ...options } as never);
  for (const name of ["timeoutMs", "fairKey", "orderKey", "runTimeoutMs", "rateLimit"])
    assert.throws(wrong({ [name]: 1 }), new RegExp(`unknown option ${name}`));
  assert.throws(wrong({ endpoint: "v1" }), /endpoint must be a path/);
  assert.throws(wrong({ maxBatchSize: Infinity }), /maxBatchSize must be an integer/);
  assert.throws(wrong({}, {}), /needs a client with batches/);
  await assert.rejects(
    batchApi(client, { endpoint: "/v1/x", body: (input: string) => [input] })("a"),
    /must be an object/,
  );
});
