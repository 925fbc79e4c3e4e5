import assert from "node:assert/strict";
import { test } from "node:test";
import { coalesce } from "../../dist/adapters/ai-sdk.js";
import { batchApi } from "../../dist/adapters/batch-api/index.js";
import { batchLog } from "../../dist/adapters/batch-log/index.js";
import { batchProcessor } from "../../dist/adapters/bullmq.js";
import { DataLoader } from "../../dist/adapters/dataloader/index.js";
import { batchClient, batchEndpoint, itemEndpoint } from "../../dist/adapters/http/index.js";
import { CoalescedEmbeddings } from "../../dist/adapters/langchain.js";
import { pacedCalls, pacedModel } from "../../dist/adapters/llm/index.js";
import { natsFrontEnd, natsWorker } from "../../dist/adapters/nats/index.js";
import { expoPush, multicast } from "../../dist/adapters/notifications/index.js";
import { openaiEmbeddings, openaiFetch } from "../../dist/adapters/openai/index.js";
import { embeddingRequests } from "../../dist/adapters/openai/requests.js";
import { insertBatcher, lookupBatcher, rateShares, upsertBatcher } from "../../dist/adapters/postgres/index.js";
import { lanceDbStore, optimistic, pgvectorStore, qdrantStore } from "../../dist/adapters/vector-store/index.js";
import { createBatcher, createRateLimit } from "../../dist/index.js";
import { scriptedClient } from "./scripted-client.js";

const nothing = async (): Promise<never[]> => [];
const pool = { query: nothing };
const table = { name: "t", schema: nothing, mergeInsert: nothing, vectorSearch: nothing };
const client = {
  files: { create: nothing, content: nothing, delete: nothing },
  batches: { create: nothing, retrieve: nothing, list: nothing, cancel: nothing },
};
const wrong = { wrongOption: 1 };

/** Makes each adapter with an option that it does not know, in place of those that it needs: it may be one of them, misspelt. */
const adapters: Record<string, () => unknown> = {
  createRateLimit: () => createRateLimit(wrong as never),
  openaiFetch: () => openaiFetch({ baseURL: "http://localhost", defaultHeaders: {}, ...wrong } as never),
  openaiEmbeddings: () => openaiEmbeddings(scriptedClient(), wrong as never),
  embeddingRequests: () => embeddingRequests(nothing, wrong as never),
  coalesce: () => coalesce(wrong as never),
  CoalescedEmbeddings: () => new CoalescedEmbeddings({ embedDocuments: nothing, embedQuery: nothing }, wrong as never),
  pacedCalls: () => pacedCalls(nothing, wrong as never),
  pacedModel: () => pacedModel(wrong as never),
  expoPush: () => expoPush({ sendPushNotificationsAsync: nothing }, wrong as never),
  multicast: () => multicast(nothing, wrong as never),
  batchClient: () => batchClient("http://localhost", wrong as never),
  batchEndpoint: () => batchEndpoint(nothing, wrong as never),
  itemEndpoint: () => itemEndpoint(nothing, wrong as never),
  batchProcessor: () => batchProcessor(nothing, wrong as never),
  natsFrontEnd: () => natsFrontEnd(wrong as never),
  natsWorker: () => natsWorker(createBatcher(nothing), wrong as never),
  DataLoader: () => new DataLoader(nothing, wrong as never),
  lookupBatcher: () => (lookupBatcher as any)(pool, wrong),
  insertBatcher: () => (insertBatcher as any)(pool, wrong),
  upsertBatcher: () => (upsertBatcher as any)(pool, wrong),
  rateShares: () => (rateShares as any)(pool, wrong),
  batchApi: () => batchApi(client, wrong as never),
  batchLog: () => (batchLog as any)(pool, wrong),
  lanceDbStore: () => lanceDbStore(table as never, wrong as never),
  pgvectorStore: () => (pgvectorStore as any)(pool, wrong),
  qdrantStore: () => (qdrantStore as any)({ upsert: nothing, query: nothing, queryBatch: nothing }, wrong), // prettier-ignore
  optimistic: () => optimistic({} as never, wrong as never),
};

/** They take no options. */
const withoutOptions =
  "batchLogTableSql hourlyReportSql rateSharesTableSql estimateTokens rateLimitHeaders isRowError".split(" ");
const entryPoints =
  "ai-sdk batch-api batch-log bullmq dataloader http langchain llm nats notifications openai postgres vector-store";

test("every function that an adapter exports is tried here, or takes no options", async () => {
  const modules = await Promise.all(
    entryPoints.split(" ").map((entry) => import(`sheaf/adapters/${entry}`) as Promise<Record<string, unknown>>),
  );
  const isError = (value: { readonly prototype?: unknown }): boolean => value.prototype instanceof Error;
  const names = modules.flatMap((module) =>
    Object.entries(module).flatMap(([name, value]) => (typeof value === "function" && !isError(value) ? [name] : [])),
  );
  const known = [...Object.keys(adapters), ...withoutOptions];
  assert.deepEqual(
    names.filter((name) => !known.includes(name)),
    [],
  );
});

for (const [name, make] of Object.entries(adapters))
  test(`${name} refuses an option that it does not know`, () => {
    assert.throws(make, /unknown option (wrongOption|defaultHeaders)/);
  });
