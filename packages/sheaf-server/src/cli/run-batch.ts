import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, openAsBlob } from "node:fs";
import { rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { builtinModels } from "../runners/builtin.ts";
import { checkModelWord } from "../runners/resolve-model.ts";
import { fileSource, nameOf } from "../server/models/file-source.ts";
import type { Settings } from "../settings/settings.ts";
import { UsageError } from "../shared/failure.ts";
import type { CommandStreams } from "../shared/terminal.ts";
import { exitCode, running, type RunCommand } from "./shared/command.ts";
import { commandWithSettings, configOf } from "./shared/setting-options.ts";

const groups = new Set(["Batching", "Cache", "Models and workers", "Requests"]);
const lookEveryMs = 200;

/** A batch as its route shows it, as far as it is of interest here. */
interface Batch {
  readonly id: string;
  readonly status: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly errors: { readonly data: readonly { readonly line: number | null; readonly message: string }[] } | null;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
}

/**
 * `sheaf run-batch -i in.jsonl -o out.jsonl [model …]`: runs a file of requests as `/v1/batches` does, on a server that only
 * this process reaches. What it has done so far is in a folder beside the output, from which the same command goes on.
 */
export const runBatch: RunCommand = running(runBatchCommand, async (command, { stderr, signal }) => {
  const { input, output } = command.opts<{ input: string; output: string }>();
  const { settings, models } = await configOf(command);
  const entries = command.args.length > 0 ? command.args.map((model) => ({ model, settings: {} })) : models;
  for (const { model } of entries) await checkModelWord(model);
  const endpoint = await endpointIn(input);
  const folder = `${output}.part`;
  const own: Partial<Settings> = {
    batchesDir: folder,
    batchesMaxBytes: Number.MAX_SAFE_INTEGER,
    host: "127.0.0.1",
    port: 0,
    logLevel: "warn",
    apiKey: undefined,
    apiKeysFile: undefined,
    natsUrl: undefined,
    grpcPort: undefined,
  };
  const { openApp } = await import("../http/app.ts");
  const { serverOn } = await import("../server/server.ts");
  const { modelOutput } = await import("../observe/log.ts");
  const served = { ...settings, ...own };
  const app = openApp(served);
  const sources = entries.map((entry) => fileSource(entry, served, modelOutput(app.log, nameOf(entry))));
  const server = await serverOn(app, { models: sources, settings: served });
  let isOver = false;
  try {
    const url = `${await server.listen()}/v1`;
    await server.ready();
    let batch = await openBatch(url, input, endpoint, folder);
    while (!["completed", "failed", "expired"].includes(batch.status)) {
      await sleep(lookEveryMs, undefined, { signal });
      batch = await asked<Batch>(`${url}/batches/${batch.id}`);
    }
    for (const { line, message } of batch.errors?.data ?? [])
      stderr.write(`${input}${line === null ? "" : `:${line}`}: ${message}\n`);
    const { total, failed } = batch.request_counts;
    isOver = batch.status === "failed";
    if (isOver) return exitCode.failure;
    for (const [index, id] of [batch.output_file_id, batch.error_file_id].filter((one) => one !== null).entries()) {
      const { body } = await fetch(`${url}/files/${id}/content`);
      await pipeline(Readable.fromWeb(body as never), createWriteStream(output, { flags: index === 0 ? "w" : "a" }));
    }
    isOver = true;
    stderr.write(`${total} lines, ${failed} of them with an error: ${output}\n`);
    return exitCode.ok;
  } finally {
    await server.close();
    // What was done before an error or a signal is there for the next try.
    if (isOver) await rm(folder, { recursive: true, force: true });
  }
});

export function runBatchCommand(streams: CommandStreams): Command {
  const isShown = ({ group }: { readonly group: string }): boolean => groups.has(group);
  const summary = "Runs a file of requests, one a line, without a server, as /v1/batches does with one.";
  return commandWithSettings("run-batch", summary, streams, { isShown })
    .requiredOption("-i, --input <file>", "file of requests in OpenAI's batch format")
    .requiredOption("-o, --output <file>", "file for the results, then the errors")
    .argument(
      "[model...]",
      `models as for sheaf serve: ${Object.keys(builtinModels).join(", ")}, a file or a folder (default: use-lite)`,
    );
}

/** The batch that an earlier run of the same input left, or a new one. @throws {UsageError} it left another input's. */
async function openBatch(url: string, input: string, endpoint: string, folder: string): Promise<Batch> {
  const { data } = await asked<{ readonly data: readonly Batch[] }>(`${url}/batches`);
  const hash = createHash("sha256");
  await pipeline(createReadStream(input), hash);
  const metadata = { input_sha256: hash.digest("hex") };
  const [left] = data;
  if (left !== undefined && left.metadata?.["input_sha256"] !== metadata.input_sha256)
    throw new UsageError(`${folder} has the results of another input. Finish that input first, or remove the folder.`);
  if (left !== undefined) return left;
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", await openAsBlob(input), "input.jsonl");
  const { id } = await asked<{ readonly id: string }>(`${url}/files`, { method: "POST", body: form });
  const body = JSON.stringify({ input_file_id: id, endpoint, completion_window: "7d", metadata });
  return asked<Batch>(`${url}/batches`, { method: "POST", body, headers: { "content-type": "application/json" } });
}

async function asked<T>(url: string, init?: RequestInit): Promise<T> {
  const response = await fetch(url, init);
  const reply = (await response.json()) as T & { readonly detail?: string };
  if (!response.ok) throw new UsageError(reply.detail ?? response.statusText);
  return reply;
}

/** The `url` of the first line: all others must have it too. */
async function endpointIn(input: string): Promise<string> {
  try {
    for await (const line of createInterface({ input: createReadStream(input) })) {
      if (line.trim() === "") continue;
      const { url } = JSON.parse(line) as { readonly url?: unknown };
      if (typeof url === "string") return url;
      break;
    }
  } catch (error) {
    throw new UsageError(`${input} cannot be read: ${(error as Error).message}`);
  }
  throw new UsageError(`${input} does not begin with a request that names its url.`);
}
