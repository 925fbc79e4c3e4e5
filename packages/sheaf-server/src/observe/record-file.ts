import { lstat, open, rename, type FileHandle } from "node:fs/promises";
import type { FastifyBaseLogger } from "fastify";
import type { Batcher } from "sheaf";
import { recordCalls } from "sheaf/tuning";

/** A longer file is set aside as FILE.1, in place of the one before. */
const maxFileBytes = 268_435_456;
/** Lines that wait for the disk, in characters; if there are more, the recording ends. */
const maxWaiting = 16_777_216;
const flushChars = 65_536;
const flushEveryMs = 1000;

interface Limits {
  readonly maxFileBytes?: number;
}

/** The record of the calls of all models, in a file that only its owner can read. If it cannot be written, only the recording ends. */
export class RecordFile {
  readonly #path: string;
  readonly #log: Pick<FastifyBaseLogger, "warn">;
  readonly #maxFileBytes: number;
  readonly #timer: NodeJS.Timeout;
  readonly #ends: Set<() => void> = new Set();
  #file: FileHandle;
  #bytes = 0;
  #lines: string[] = [];
  #waiting = 0;
  #writing: Promise<void> | undefined;
  #isOver = false;

  /** Begins a new file; one of this name becomes FILE.1. @throws where it cannot be written. */
  static async open(path: string, log: Pick<FastifyBaseLogger, "warn">, limits: Limits = {}): Promise<RecordFile> {
    return new RecordFile(path, await begin(path), log, limits);
  }

  private constructor(path: string, file: FileHandle, log: Pick<FastifyBaseLogger, "warn">, limits: Limits) {
    this.#path = path;
    this.#file = file;
    this.#log = log;
    this.#maxFileBytes = limits.maxFileBytes ?? maxFileBytes;
    this.#timer = setInterval(() => void this.#flush(), flushEveryMs).unref();
  }

  /** Records the calls of a batcher until the returned function is called. */
  add(batcher: Pick<Batcher<never, unknown>, "name">, cached?: () => number): () => void {
    if (this.#isOver) return () => undefined;
    const end = recordCalls(batcher as Batcher<never, unknown>, (line) => this.#write(line), { cached });
    this.#ends.add(end);
    return () => {
      this.#ends.delete(end);
      end();
    };
  }

  async close(): Promise<void> {
    this.#endAll();
    while (this.#lines.length > 0 && !this.#isOver) await this.#flush();
    this.#isOver = true;
    await this.#file.close().catch(() => undefined);
  }

  #write(line: string): void {
    if (this.#isOver) return;
    this.#lines.push(line);
    this.#waiting += line.length + 1;
    if (this.#waiting > maxWaiting) this.#fail(new Error("the disk is too slow"));
    else if (this.#waiting > flushChars) void this.#flush();
  }

  #flush(): Promise<void> {
    return (this.#writing ??= this.#flushNow().finally(() => (this.#writing = undefined)));
  }

  async #flushNow(): Promise<void> {
    if (this.#lines.length === 0 || this.#isOver) return;
    const bytes = Buffer.from(`${this.#lines.join("\n")}\n`);
    this.#lines = [];
    this.#waiting = 0;
    try {
      if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxFileBytes) {
        await this.#file.close();
        this.#file = await begin(this.#path);
        this.#bytes = 0;
      }
      await this.#file.writeFile(bytes);
      this.#bytes += bytes.length;
    } catch (error) {
      this.#fail(error as Error);
      // Of the last lines the disk may have taken a part, which nobody can read.
      await this.#file.truncate(this.#bytes).catch(() => undefined);
    }
  }

  #fail({ message }: Error): void {
    this.#isOver = true;
    this.#lines = [];
    this.#endAll();
    this.#log.warn({ file: this.#path }, `calls are no longer recorded: ${message}`);
  }

  #endAll(): void {
    clearInterval(this.#timer);
    for (const end of this.#ends) end();
    this.#ends.clear();
  }
}

async function begin(path: string): Promise<FileHandle> {
  const earlier = await lstat(path).catch(() => undefined);
  if (earlier?.isFile() === false) throw new Error(`${path} is no file`);
  if (earlier !== undefined) await rename(path, `${path}.1`);
  return open(path, "wx", 0o600);
}
