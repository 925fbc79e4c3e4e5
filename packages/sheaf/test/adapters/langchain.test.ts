import assert from "node:assert/strict";
import { test } from "node:test";
import { CoalescedEmbeddings } from "../../dist/adapters/langchain.js";
import { manualClock } from "../../dist/testing/index.js";
import { watch } from "../support/rig.js";

function rig(options: Record<string, unknown> = {}) {
  const clock = manualClock();
  const calls: [string, string[]][] = [];
  const embed = async (name: string, texts: string[]): Promise<number[][]> => {
    calls.push([name, texts]);
    await new Promise<void>((resolve) => void clock.after(10, resolve));
    return texts.map((text) => [text.length, name.length]);
  };
  const inner = {
    embedDocuments: (texts: string[]) => embed("documents", texts),
    embedQuery: async (text: string) => (await embed("query", [text]))[0]!,
  };
  const embedQueries = (texts: string[]): Promise<number[][]> => embed("queries", texts);
  const embeddings = new CoalescedEmbeddings(inner, {
    clock,
    concurrency: 1,
    ...options,
    ...(options["embedQueries"] === true ? { embedQueries } : {}),
  } as never);
  return { clock, calls, embeddings };
}

test("queries that are asked at the same time share one embedDocuments; each gets its own vector", async () => {
  const { clock, calls, embeddings } = rig();
  const queries = ["a", "bb", "ccc"].map((text) => watch(embeddings.embedQuery(text)));
  await clock.advanceAsync(50);
  assert.deepEqual(calls, [["documents", ["a", "bb", "ccc"]]]);
  assert.deepEqual(
    queries.map(({ value }) => value?.[0]),
    [1, 2, 3],
  );
});

test("embedDocuments keeps the order of any number of texts, and queries overtake documents that wait", async () => {
  const { clock, calls, embeddings } = rig({ maxBatchSize: 2 });
  const documents = watch(embeddings.embedDocuments(["a", "bb", "ccc", "dddd", "eeeee"]));
  await clock.advanceAsync(1);
  const query = watch(embeddings.embedQuery("q"));
  await clock.advanceAsync(500);
  assert.deepEqual(
    documents.value?.map(([length]) => length),
    [1, 2, 3, 4, 5],
  );
  assert.equal(query.status, "fulfilled");
  assert.deepEqual(calls[0]![1], ["a", "bb"]);
  assert.deepEqual(calls[1]![1][0], "q");
  assert.deepEqual(await embeddings.embedDocuments([]), []);
});

test("where queries are embedded otherwise than documents, the two never share a run", async () => {
  const { clock, calls, embeddings } = rig({ embedQueries: true });
  const all = [
    watch(embeddings.embedQuery("a")),
    watch(embeddings.embedDocuments(["b"])),
    watch(embeddings.embedQuery("c")),
  ];
  await clock.advanceAsync(100);
  assert.deepEqual(
    calls.sort(([a], [b]) => a.localeCompare(b)),
    [
      ["documents", ["b"]],
      ["queries", ["a", "c"]],
    ],
  );
  assert.ok(all.every(({ status }) => status === "fulfilled"));
});

test("its batcher shows statistics and closes it", async () => {
  const { embeddings } = rig();
  assert.equal(embeddings.batcher.name, "embeddings");
  await embeddings.batcher.close();
  await assert.rejects(embeddings.embedQuery("a"), { code: "CLOSED" });
});

test("anything but an Embeddings instance, and wrong options, are refused", () => {
  assert.throws(() => new CoalescedEmbeddings({} as never), /wraps an Embeddings instance with embedDocuments/);
  const inner = { embedDocuments: async () => [], embedQuery: async () => [] };
  assert.throws(
    () => new CoalescedEmbeddings(inner, { embedQueries: "x" } as never),
    /embedQueries must be a function/,
  );
  assert.throws(() => new CoalescedEmbeddings(inner, { concurrency: 0 }), /concurrency must be an integer >= 1/);
});
