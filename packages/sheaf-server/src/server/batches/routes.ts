import { createReadStream } from "node:fs";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { jsonOf } from "../../http/bodies/body.ts";
import { callerOf } from "../../http/check-callers.ts";
import { Type, type Schema } from "../../http/schema/json-schema.ts";
import { count, json, problemResponses, text, type RouteSchema } from "../../http/schema/route-schema.ts";
import { invalid, Problem } from "../../problems/problem.ts";
import type { Models } from "../models/models.ts";
import { anyText, closedObject, field, kindOf, required } from "../protocols/fields.ts";
import type { Batches } from "./batches.ts";
import type { EndpointMatch } from "./endpoints.ts";
import { isOver, type Sender, type StoredBatch, type StoredFile } from "./records.ts";
import { isDiskFull, readKeep, receiveFile } from "./upload.ts";
import type { Store } from "./store.ts";

interface BatchRoutes {
  readonly models: Models;
  readonly store: Store;
  readonly batches: Batches;
  readonly match: (endpoint: string) => EndpointMatch | undefined;
}

/** These paths on a server without BATCHES_DIR. */
export function noBatchRoutes(app: FastifyInstance): void {
  const refuse = (): never => {
    throw new Problem("NOT_FOUND", "Files and batches are off: the server needs BATCHES_DIR, a folder for them.");
  };
  for (const url of ["/v1/files", "/v1/files/*", "/v1/batches", "/v1/batches/*"])
    app.route({
      url,
      method: ["GET", "POST", "DELETE"],
      schema: { hide: true },
      onRequest: refuse,
      handler: refuse,
    });
}

/** `/v1/files` and `/v1/batches`, as OpenAI's clients use them. */
export function batchRoutes(app: FastifyInstance, { models, store, batches, match }: BatchRoutes): void {
  const { settings } = models;
  const idOf = (request: FastifyRequest): string => (request.params as { readonly id: string }).id;
  void app.register(async (forms) => {
    forms.addContentTypeParser("multipart/form-data", (_request, _payload, done) => done(null));
    forms.post("/v1/files", { schema: uploadSchema }, async (request) => {
      models.refuseDraining();
      return fileJson(await receiveFile(request, store, senderOf(request), settings));
    });
  });
  app.get("/v1/files", { schema: listSchema("listFiles", "List the files", fileSchema) }, (request) => {
    const { purpose, order = "desc" } = request.query as Record<string, unknown>;
    const own = [...store.files.values()].filter(
      (file) => isOf(file, request) && (purpose === undefined || file.purpose === purpose),
    );
    return pageOf(order === "asc" ? own : own.reverse(), request, 10_000, 10_000, fileJson);
  });
  app.get("/v1/files/:id", { schema: oneSchema("retrieveFile", "Describe a file", fileSchema) }, (request) =>
    fileJson(store.file(idOf(request), senderOf(request))),
  );
  app.get("/v1/files/:id/content", { schema: contentSchema }, (request, reply) => sendContent(request, reply));
  app.delete("/v1/files/:id", { schema: oneSchema("deleteFile", "Delete a file", deletedSchema) }, async (request) => {
    const { id } = store.file(idOf(request), senderOf(request));
    const user = [...store.batches.values()].find((batch) => batch.inputFileId === id && !isOver(batch));
    if (user !== undefined) throw new Problem("BAD_REQUEST", `${user.id} reads this file; cancel it first.`);
    await written(store.remove(id));
    return { id, object: "file", deleted: true };
  });

  app.post("/v1/batches", { schema: createSchema(models) }, async (request) => {
    models.refuseDraining();
    const wanted = batchBody.read(jsonOf(request.body), "");
    const { endpoint, input_file_id: inputFileId, completion_window: completionWindow } = wanted;
    if (match(endpoint) === undefined)
      throw invalid("endpoint", "the path of a route that takes JSON, such as /v1/embeddings", endpoint);
    const windowMs = windowMsOf(completionWindow);
    const keepS = readKeep("output_expires_after", wanted.output_expires_after);
    const metadata = readMetadata(wanted.metadata);
    const made = { endpoint, inputFileId, completionWindow, windowMs, keepS, metadata };
    return batchJson(await written(batches.create(senderOf(request), made)));
  });
  app.get("/v1/batches", { schema: listSchema("listBatches", "List the batches", batchSchema) }, (request) => {
    const own = [...store.batches.values()].filter((batch) => isOf(batch, request));
    return pageOf(own.reverse(), request, 20, 100, batchJson);
  });
  app.get("/v1/batches/:id", { schema: oneSchema("retrieveBatch", "Describe a batch", batchSchema) }, (request) =>
    batchJson(store.batch(idOf(request), senderOf(request))),
  );
  app.post(
    "/v1/batches/:id/cancel",
    { schema: oneSchema("cancelBatch", "Cancel a batch; results so far are kept", batchSchema) },
    async (request) => {
      const id = idOf(request);
      // An operator sees every batch on the page, and may end it there.
      const isOperator = callerOf(request)?.isOperator ?? true;
      const batch = (isOperator ? store.batches.get(id) : undefined) ?? store.batch(id, senderOf(request));
      return batchJson(await written(batches.cancel(batch)));
    },
  );

  function sendContent(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { id, bytes } = store.file(idOf(request), senderOf(request));
    // A stream lasts as long as its client reads it.
    return reply
      .type("application/jsonl")
      .header("content-length", bytes)
      .send(bytes === 0 ? "" : createReadStream(store.pathOf(id), { end: bytes - 1 }));
  }
}

function senderOf(request: FastifyRequest): Sender {
  const caller = callerOf(request);
  return { key: caller?.key?.terms.name ?? null, tenant: caller?.tenant.name ?? null };
}

const isOf = ({ sender }: StoredFile | StoredBatch, request: FastifyRequest): boolean =>
  sender.tenant === senderOf(request).tenant;

/** If the journal refuses an entry, the disk is at fault. */
async function written<T>(writing: Promise<T>): Promise<T> {
  try {
    return await writing;
  } catch (error) {
    if (isDiskFull((error as NodeJS.ErrnoException).code))
      throw new Problem("STORAGE_FULL", "The disk of the folder of batches is full.", { cause: error });
    throw error;
  }
}

const batchBody = closedObject("an object with input_file_id, endpoint and completion_window", {
  input_file_id: required(anyText, "Id of a file with a request in each line."),
  endpoint: required(anyText, "Path of the route that answers every line, such as /v1/embeddings."),
  completion_window: required(anyText, "24h; here also from 1m to 7d. Only time in which the server runs counts."),
  metadata: field(
    kindOf(
      "an object of texts",
      (value) => typeof value === "object",
      Type.Object({}, { additionalProperties: Type.String() }),
    ),
    "At most 16 texts with names of your own.",
  ),
  output_expires_after: field(
    kindOf(
      "an object with anchor and seconds",
      (value) => typeof value === "object",
      Type.Object({ anchor: Type.String(), seconds: Type.Integer() }),
    ),
    "How long results are kept. Default: 30 days.",
  ),
});

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

function windowMsOf(window: string): number {
  const [, amount, unit] = /^(\d{1,5})([mhd])$/.exec(window) ?? [];
  const ms = Number(amount) * unitMs[unit as keyof typeof unitMs];
  if (!(ms >= unitMs.m && ms <= 7 * unitMs.d))
    throw invalid("completion_window", '"24h", or from "1m" to "7d"', window);
  return ms;
}

function readMetadata(given: unknown): Readonly<Record<string, string>> | null {
  if (given === undefined || given === null) return null;
  const entries = Object.entries(given);
  const isValid = ([name, value]: [string, unknown]): boolean =>
    name.length <= 64 && typeof value === "string" && value.length <= 512;
  if (Array.isArray(given) || entries.length > 16 || !entries.every(isValid))
    throw invalid("metadata", "an object of at most 16 texts of 512 characters with names of 64", given);
  return given as Record<string, string>;
}

/** A page of a list that begins after the id `after`. */
function pageOf<T extends { readonly id: string }>(
  all: readonly T[],
  { query }: FastifyRequest,
  standard: number,
  most: number,
  shown: (one: T) => object,
): object {
  const { after, limit = standard } = query as { readonly after?: string; readonly limit?: unknown };
  if (!(Number.isInteger(Number(limit)) && Number(limit) >= 1 && Number(limit) <= most))
    throw invalid("limit", `an integer from 1 to ${most}`, limit);
  const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && from === 0) throw invalid("after", "the id of one in the list", after);
  const page = all.slice(from, from + Number(limit));
  return {
    object: "list",
    data: page.map(shown),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: from + page.length < all.length,
  };
}

const fileJson = ({ id, bytes, filename, purpose, createdAt, expiresAt }: StoredFile): object => ({
  id,
  object: "file",
  bytes,
  created_at: createdAt,
  expires_at: expiresAt,
  filename,
  purpose,
  status: "processed",
});

function batchJson(batch: StoredBatch): object {
  const { written, errors, metadata, paused, versions, at } = batch;
  const isDone = isOver(batch);
  const notes = {
    ...(paused !== null && { sheaf_paused: paused.slice(0, 512) }),
    ...(versions.length > 1 && { sheaf_model_versions: versions.join(", ") }),
  };
  const times = ["in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled"];
  return {
    id: batch.id,
    object: "batch",
    endpoint: batch.endpoint,
    model: batch.model,
    errors: errors.length === 0 ? null : { object: "list", data: errors },
    input_file_id: batch.inputFileId,
    completion_window: batch.completionWindow,
    status: batch.status,
    output_file_id: isDone && written.outputBytes > 0 ? batch.outputFileId : null,
    error_file_id: isDone && written.errorBytes > 0 ? batch.errorFileId : null,
    created_at: batch.createdAt,
    expires_at: batch.expiresAt,
    ...Object.fromEntries(times.map((name) => [`${name}_at`, at[`${name}_at`] ?? null])),
    request_counts: { total: batch.total, completed: written.completed, failed: written.failed },
    usage: {
      input_tokens: written.tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: written.tokens,
    },
    metadata: metadata === null && Object.keys(notes).length === 0 ? null : { ...metadata, ...notes },
  };
}

const fileSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal("file"),
  bytes: count("Size of the file."),
  created_at: Type.Integer(),
  expires_at: Type.Integer(),
  filename: Type.String(),
  purpose: text("batch, or batch_output for results."),
  status: Type.Literal("processed"),
});
const deletedSchema = Type.Object({ id: Type.String(), object: Type.Literal("file"), deleted: Type.Boolean() });
const batchSchema = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal("batch"),
    status: text("validating, in_progress, finalizing, completed, failed, expired, cancelling or cancelled."),
    request_counts: Type.Object({
      total: count("Lines of the file."),
      completed: count("Lines in the output file."),
      failed: count("Lines in the error file."),
    }),
  },
  { additionalProperties: true, description: "OpenAI's batch." },
);

const tags = ["batches"];
const errors = { 404: problemResponses[404], 422: problemResponses[422] };
const id = Type.Object({ id: Type.String() });

const oneSchema = (operationId: string, summary: string, schema: Schema): RouteSchema => ({
  summary,
  tags,
  operationId,
  params: id,
  response: { 200: json("As OpenAI describes it.", schema), 404: problemResponses[404] },
});
const listSchema = (operationId: string, summary: string, schema: Schema): RouteSchema & { querystring: Schema } => ({
  summary,
  description: "The sender's own, the newest first.",
  tags,
  operationId,
  querystring: Type.Object({
    after: Type.Optional(text("Id after which the page begins.")),
    limit: Type.Optional(Type.Integer({ minimum: 1 })),
  }),
  response: {
    200: json(
      "A page.",
      Type.Object({ object: Type.Literal("list"), data: Type.Array(schema), has_more: Type.Boolean() }),
    ),
    422: problemResponses[422],
  },
});
const uploadSchema = {
  summary: "Upload a file of requests",
  description: "A form with file, purpose=batch and, optionally, expires_after.",
  tags,
  operationId: "uploadFile",
  consumes: ["multipart/form-data"],
  response: { 200: json("The file.", fileSchema), 422: problemResponses[422] },
} satisfies RouteSchema & { consumes: string[] };
const contentSchema: RouteSchema = {
  summary: "Read a file",
  tags,
  operationId: "downloadFile",
  params: id,
  response: {
    200: { description: "Its bytes.", content: { "application/jsonl": { schema: Type.String() } } },
    404: problemResponses[404],
  },
};
const createSchema = (models: Models): RouteSchema => ({
  summary: "Run the requests of a file in the background",
  tags,
  operationId: "createBatch",
  body: batchBody.schema(models),
  response: { 200: json("The batch.", batchSchema), ...errors },
});
