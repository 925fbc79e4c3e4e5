import { hasMethods } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";

type Method = (...parameters: never[]) => unknown;
type Methods<Name extends string> = { readonly [name in Name]: Method };

/** The part of openai's client that is used. Clients of other providers have it too. */
export interface OpenAIBatchesLike {
  readonly files: Methods<"create" | "content" | "delete">;
  readonly batches: Methods<"create" | "retrieve" | "list" | "cancel">;
}

/** The part of Mistral's client that is used. */
export interface MistralBatchesLike {
  readonly files: Methods<"upload" | "download" | "delete">;
  readonly batch: { readonly jobs: Methods<"create" | "get" | "list" | "cancel"> };
}

/** A batch as its provider shows it. */
export interface BatchState {
  readonly id: string;
  readonly isOver: boolean;
  /** Stopped by someone: its lines are not sent again. */
  readonly isCancelled: boolean;
  /** Of its results and of its lines' errors. */
  readonly files: readonly string[];
  readonly done: number;
  readonly failed: number;
  /** Why lines have no result, where the provider says it for the whole batch. */
  readonly reason: string;
}

export interface BatchOrder {
  readonly file: string;
  readonly endpoint: string;
  readonly model: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
}

/** What is asked of a provider; no request is repeated by its client. */
export interface Provider {
  upload(file: File): Promise<string>;
  create(order: BatchOrder): Promise<BatchState>;
  /** The batch of an uploaded file, among the newest ones. */
  find(file: string): Promise<BatchState | undefined>;
  retrieve(id: string): Promise<BatchState>;
  cancel(id: string): Promise<BatchState>;
  content(file: string): PromiseLike<ReadableStream<Uint8Array>>;
  remove(file: string): PromiseLike<unknown>;
}

/** Small requests; uploads and downloads get ten minutes. */
const shortMs = 60_000;
const longMs = 600_000;
const mostListed = 1000;

/** @throws {TypeError} it is no client with batches. */
export function providerOf(client: unknown): Provider {
  const { files, batches, batch } = (client ?? {}) as Partial<OpenAIBatchesLike & MistralBatchesLike>;
  if (hasMethods(batches, "create", "retrieve", "list", "cancel") && hasMethods(files, "create", "content", "delete"))
    return openai(client as OpenAI);
  if (hasMethods(batch?.jobs, "create", "get", "list", "cancel") && hasMethods(files, "upload", "download", "delete"))
    return mistral(client as Mistral);
  throw new TypeError(`batchApi needs a client with batches (new OpenAI(), new Mistral()), got ${describe(client)}`);
}

/** A method after its name has been checked. */
type Ask<T> = (what: object | string, options: object) => PromiseLike<T>;

interface OpenAIBatch {
  readonly id: string;
  readonly status: string;
  readonly input_file_id: string;
  readonly output_file_id?: string | null;
  readonly error_file_id?: string | null;
  readonly request_counts?: { readonly completed: number; readonly failed: number } | null;
  readonly errors?: { readonly data?: readonly { readonly message?: string }[] } | null;
}

interface OpenAI {
  readonly files: {
    readonly create: Ask<{ readonly id: string }>;
    readonly content: Ask<{ readonly body: ReadableStream<Uint8Array> }>;
    readonly delete: Ask<unknown>;
  };
  readonly batches: { readonly [name in "create" | "retrieve" | "cancel"]: Ask<OpenAIBatch> } & {
    /** Pages of openai's client go on by themselves. */
    readonly list: Ask<AsyncIterable<OpenAIBatch> | { readonly data: readonly OpenAIBatch[] }>;
  };
}

function openai({ files, batches }: OpenAI): Provider {
  const short = { maxRetries: 0, timeout: shortMs };
  const long = { maxRetries: 0, timeout: longMs };
  const state = ({ id, status, output_file_id, error_file_id, request_counts, errors }: OpenAIBatch): BatchState => ({
    id,
    isOver: ["completed", "failed", "expired", "cancelled"].includes(status),
    isCancelled: status === "cancelled",
    files: [output_file_id, error_file_id].filter(isGiven),
    done: request_counts?.completed ?? 0,
    failed: request_counts?.failed ?? 0,
    reason: errors?.data?.[0]?.message ?? `the batch is ${status}`,
  });
  return {
    upload: async (file) => (await files.create({ file, purpose: "batch" }, long)).id,
    create: async ({ file, endpoint, metadata }) =>
      state(await batches.create({ input_file_id: file, endpoint, completion_window: "24h", metadata }, short)),
    find: async (file) => {
      const page = await batches.list({ limit: 100 }, short);
      let listed = 0;
      for await (const batch of Symbol.asyncIterator in page ? page : page.data) {
        if (batch.input_file_id === file) return state(batch);
        if (++listed >= mostListed) break;
      }
      return undefined;
    },
    retrieve: async (id) => state(await batches.retrieve(id, short)),
    cancel: async (id) => state(await batches.cancel(id, short)),
    content: async (id) => (await files.content(id, long)).body,
    remove: (id) => files.delete(id, short),
  };
}

interface MistralJob {
  readonly id: string;
  readonly status: string;
  readonly inputFiles: readonly string[];
  readonly outputFile?: string | null;
  readonly errorFile?: string | null;
  readonly succeededRequests: number;
  readonly failedRequests: number;
  readonly errors?: readonly { readonly message?: string }[];
}

interface Mistral {
  readonly files: {
    readonly upload: Ask<{ readonly id: string }>;
    readonly download: Ask<ReadableStream<Uint8Array>>;
    readonly delete: Ask<unknown>;
  };
  readonly batch: {
    readonly jobs: { readonly [name in "create" | "get" | "cancel"]: Ask<MistralJob> } & {
      readonly list: Ask<{ readonly data?: readonly MistralJob[] }>;
    };
  };
}

function mistral({ files, batch: { jobs } }: Mistral): Provider {
  const short = { retries: { strategy: "none" }, timeoutMs: shortMs };
  const long = { retries: { strategy: "none" }, timeoutMs: longMs };
  const state = ({
    id,
    status,
    outputFile,
    errorFile,
    succeededRequests,
    failedRequests,
    errors,
  }: MistralJob): BatchState => ({
    id,
    isOver: ["SUCCESS", "FAILED", "TIMEOUT_EXCEEDED", "CANCELLED"].includes(status),
    isCancelled: status === "CANCELLED",
    files: [outputFile, errorFile].filter(isGiven),
    done: succeededRequests,
    failed: failedRequests,
    reason: errors?.[0]?.message ?? `the batch is ${status}`,
  });
  return {
    upload: async (file) => (await files.upload({ file, purpose: "batch" }, long)).id,
    create: async ({ file, ...order }) => state(await jobs.create({ inputFiles: [file], ...order }, short)),
    find: async (file) => {
      for (let page = 0; page * 100 < mostListed; page++) {
        const { data = [] } = await jobs.list({ page, pageSize: 100, orderBy: "-created" }, short);
        const found = data.find(({ inputFiles }) => inputFiles.includes(file));
        if (found !== undefined || data.length < 100) return found && state(found);
      }
      return undefined;
    },
    retrieve: async (jobId) => state(await jobs.get({ jobId }, short)),
    cancel: async (jobId) => state(await jobs.cancel({ jobId }, short)),
    content: (fileId) => files.download({ fileId }, long),
    remove: (fileId) => files.delete({ fileId }, short),
  };
}

const isGiven = (file: string | null | undefined): file is string => typeof file === "string" && file !== "";
