// Compiled by client-types.test.mjs, never run.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { PGlite } from "@electric-sql/pglite";
import { connect } from "@lancedb/lancedb";
import { QdrantClient } from "@qdrant/js-client-rest";
import { wrapLanguageModel, type LanguageModel } from "ai";
import OpenAI from "openai";
import pg from "pg";
import postgres from "postgres";
import { batchLog } from "sheaf/adapters/batch-log";
import { pacedCalls, pacedModel } from "sheaf/adapters/llm";
import { insertBatcher, lookupBatcher, upsertBatcher, type PostgresClient } from "sheaf/adapters/postgres";
import { lanceDbStore, optimistic, pgvectorStore, qdrantStore } from "sheaf/adapters/vector-store";

const pool = new pg.Pool();
const clients: PostgresClient[] = [pool, await pool.connect(), new pg.Client(), postgres(), await PGlite.create()];
for (const client of clients) batchLog(client);

interface User {
  id: number;
  email: string;
}
const insert = insertBatcher<{ email: string }, User>(pool, { table: "users", maxBatchSize: 100, timeoutMs: 50 });
const user: User = await insert({ email: "a" });
const id: number = user.id;
// @ts-expect-error a row needs its email
await insert({ emial: "a" });
// @ts-expect-error the batcher's groups follow from the rows
insertBatcher(pool, { table: "users", groupKey: () => 1 });
// @ts-expect-error an upsert needs its key
upsertBatcher(postgres(), { table: "users" });
// @ts-expect-error no client
insertBatcher({ execute() {} }, { table: "users" });

const untyped: Record<string, unknown> = await insertBatcher(pool, { table: "users" })({ email: "a" });
const find = lookupBatcher<number, User>(postgres(), { table: "users", key: "id" });
const found: User | undefined = await find(id);
const all: User[] = await lookupBatcher<number, User, "all">(pool, { table: "users", key: "id", rows: "all" })(1);

const table = await (await connect("memory")).openTable("docs");
const stores = [pgvectorStore(pool, { table: "docs" }), lanceDbStore(table)] as const;
await optimistic(stores[0]).query({ vector: new Float32Array(3), filter: { tenant: "a" } });
// @ts-expect-error LanceDB's filter is its own SQL
await stores[1].query({ vector: [1], filter: { tenant: "a" } });
await qdrantStore(new QdrantClient(), { collection: "docs" }).upsert({ id: 1, vector: [1, 2] });
export { all, found, untyped };

const openai = new OpenAI();
const chat = pacedCalls((body: OpenAI.ChatCompletionCreateParamsNonStreaming, { signal }) =>
  openai.chat.completions.create(body, { signal, maxRetries: 0 }).withResponse(),
);
export const answer: string | null | undefined = (await chat({ model: "m", messages: [] })).data.choices[0]?.message
  .content;
const anthropic = new Anthropic();
const streams = pacedCalls((body: Anthropic.MessageCreateParamsStreaming, { signal }) =>
  anthropic.messages.create(body, { signal, maxRetries: 0 }),
);
for await (const { type } of await streams({ model: "m", max_tokens: 5, messages: [], stream: true })) void type;
const unpaced = createOpenAICompatible({ name: "local", baseURL: "http://localhost" }).languageModel("m");
export const paced: LanguageModel = wrapLanguageModel({ model: unpaced, middleware: pacedModel() });
