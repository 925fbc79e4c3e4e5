import { parentPort } from "node:worker_threads";
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { checkLines, type CheckOrder } from "./check-lines.ts";
import { linesOf, type Line } from "./lines.ts";
import type { Written } from "./records.ts";

export interface LineRequest {
  readonly number: number;
  readonly customId: string;
  readonly body: string;
  /** Items in the line, estimated by its longest list. */
  readonly items: number;
}

export interface LineReply {
  readonly number: number;
  readonly customId: string;
  readonly status: number;
  readonly requestId: string;
  /** JSON. */
  readonly body: Uint8Array;
}

export interface OpenOrder {
  readonly batch: string;
  readonly input: string;
  readonly output: string;
  readonly errors: string;
  readonly written: Written;
  readonly maxLineBytes: number;
}

interface OpenBatch {
  readonly files: readonly [input: FileHandle, output: FileHandle, errors: FileHandle];
  readonly id: string;
  readonly lines: AsyncGenerator<Line, void, void>;
  /** Numbers of the lines with a result. */
  readonly done: Set<number>;
  written: Written;
}

const batches = new Map<string, OpenBatch>();

/** What the thread does; each is asked for by a message and answered by another. */
const orders = {
  check: (order: CheckOrder) => checkLines(order),

  /** Truncates the results to what the journal confirms, and reads which lines have one. */
  async open({ batch, input, output, errors, written, maxLineBytes }: OpenOrder): Promise<void> {
    const from = await open(input);
    const results = await Promise.all([output, errors].map((path) => open(path, writable, 0o600)));
    const files = [from, results[0]!, results[1]!] as const;
    await files[1].truncate(written.outputBytes);
    await files[2].truncate(written.errorBytes);
    const done = new Set<number>();
    for (const file of files.slice(1))
      for await (const { bytes } of linesOf(file, headBytes))
        done.add(Number(/^\{"id":"batch_req_[0-9a-f]+_(\d+)"/.exec(bytes.toString("latin1", 0, headBytes))![1]));
    batches.set(batch, {
      files,
      id: batch.slice(batch.indexOf("_") + 1),
      lines: linesOf(from, maxLineBytes),
      done,
      written,
    });
  },

  /** The next lines without a result, about `items` items or the rest of the file. */
  async read({ batch, items }: { readonly batch: string; readonly items: number }): Promise<LineRequest[]> {
    const { lines, done } = batches.get(batch)!;
    const read: LineRequest[] = [];
    for (let room = items; room > 0;) {
      const { value } = await lines.next();
      if (value === undefined) break;
      if (done.has(value.number)) continue;
      const { custom_id: customId, body } = JSON.parse(value.bytes.toString("utf8")) as {
        readonly custom_id: string;
        readonly body: Record<string, unknown>;
      };
      const request = { number: value.number, customId, body: JSON.stringify(body), items: itemsIn(body) };
      room -= request.items;
      read.push(request);
    }
    return read;
  },

  /** @throws if the disk is full: then no reply of the list counts as written. */
  async write({ batch, replies }: { readonly batch: string; readonly replies: readonly LineReply[] }): Promise<void> {
    const { id } = batches.get(batch)!;
    const [good, bad]: [Buffer[], Buffer[]] = [[], []];
    let tokens = 0;
    for (const { number, customId, status, requestId, body } of replies) {
      const head = `{"id":"batch_req_${id}_${number}","custom_id":${JSON.stringify(customId)},"response":{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":`;
      const isGood = status < 400;
      if (isGood) tokens += tokensIn(body);
      (isGood ? good : bad).push(Buffer.concat([Buffer.from(head), body, end]));
    }
    await add(batches.get(batch)!, good, bad, tokens);
    for (const { number } of replies) batches.get(batch)!.done.add(number);
  },

  /** Writes this error as the result of every line without one. */
  async rest({
    batch,
    code,
    message,
  }: {
    readonly batch: string;
    readonly code: string;
    readonly message: string;
  }): Promise<void> {
    const open = batches.get(batch)!;
    const error = JSON.stringify({ code, message });
    let numbers: number[] = [];
    let lines: Buffer[] = [];
    const flush = async (): Promise<void> => {
      await add(open, [], lines, 0);
      for (const number of numbers) open.done.add(number);
      [numbers, lines] = [[], []];
    };
    for await (const { number, bytes } of linesOf(open.files[0], Infinity)) {
      if (open.done.has(number)) continue;
      const { custom_id: customId } = JSON.parse(bytes.toString("utf8")) as { readonly custom_id: string };
      const head = `{"id":"batch_req_${open.id}_${number}","custom_id":${JSON.stringify(customId)}`;
      lines.push(Buffer.from(`${head},"response":null,"error":${error}}\n`));
      if (numbers.push(number) === linesAtOnce) await flush();
    }
    await flush();
  },

  /** @returns what is on the disk. */
  async sync({ batch }: { readonly batch: string }): Promise<Written> {
    const { files, written } = batches.get(batch)!;
    await Promise.all([files[1].datasync(), files[2].datasync()]);
    return written;
  },

  async close({ batch }: { readonly batch: string }): Promise<void> {
    const open = batches.get(batch);
    batches.delete(batch);
    await Promise.all(open?.files.map((file) => file.close()) ?? []);
  },
};

export type Orders = typeof orders;

const writable = constants.O_RDWR | constants.O_CREAT;
/** Longest prefix read to find the id of a line. */
const headBytes = 100;
const linesAtOnce = 1000;
const end = Buffer.from(`},"error":null}\n`);

/** Writes lines at the confirmed end of the file, over the remains of a failed attempt. */
async function add(open: OpenBatch, good: readonly Buffer[], bad: readonly Buffer[], tokens: number): Promise<void> {
  const { written, files } = open;
  const outputBytes = await appended(files[1], good, written.outputBytes);
  const errorBytes = await appended(files[2], bad, written.errorBytes);
  open.written = {
    outputBytes,
    errorBytes,
    completed: written.completed + good.length,
    failed: written.failed + bad.length,
    tokens: written.tokens + tokens,
  };
}

async function appended(file: FileHandle, pieces: readonly Buffer[], position: number): Promise<number> {
  const bytes = Buffer.concat(pieces);
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at, position + at);
    at += bytesWritten;
  }
  return position + bytes.length;
}

/** `total_tokens` from the end of a reply in OpenAI's format. */
function tokensIn(body: Uint8Array): number {
  const last = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1", body.length - 120);
  return Number(/"total_tokens":(\d+)\}\}$/.exec(last)?.[1] ?? 0);
}

function itemsIn(body: Record<string, unknown>): number {
  let most = 1;
  for (const value of Object.values(body))
    if (Array.isArray(value) && typeof value[0] !== "number") most = Math.max(most, value.length);
  return most;
}

interface Asked {
  readonly id: number;
  readonly name: keyof Orders;
  readonly order: never;
}

parentPort!.on("message", ({ id, name, order }: Asked) => {
  (orders[name](order) as Promise<unknown>).then(
    (result) => parentPort!.postMessage({ id, result }),
    (error: NodeJS.ErrnoException) =>
      parentPort!.postMessage({ id, error: { message: error.message, code: error.code } }),
  );
});
