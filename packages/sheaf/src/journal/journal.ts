import { constants } from "node:fs";
import { open, rename, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";

export interface JournalOptions<Fact> {
  /** Gets every fact of the file, in order. */
  readonly replay: (fact: Fact) => void;
  /** The facts from which all others follow: a compacted file has only these. */
  readonly facts: () => Iterable<Fact>;
}

const readBytes = 1_048_576;
const newline = 0x0a;

/** Bytes after which a file is compacted, where it has also doubled. */
const leastCompactedBytes = 1_048_576;

/**
 * Facts in a file, one line each: its CRC-32 in eight hex digits, a space, the fact as JSON. A reader needs no tool but a
 * text editor. A process that is killed leaves at most one line that is cut short, and the next one drops it.
 */
export class Journal<Fact> {
  readonly #path: string;
  readonly #options: JournalOptions<Fact>;
  #file: FileHandle;
  #bytes: number;
  /** After the last compaction; 0 before the first one, so that short processes do not let a long file grow. */
  #compactedBytes = 0;
  #unwritten: string[] = [];
  /** The write in progress, and those that follow it. */
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  private constructor(path: string, options: JournalOptions<Fact>, file: FileHandle, bytes: number) {
    this.#path = path;
    this.#options = options;
    this.#file = file;
    this.#bytes = bytes;
  }

  /**
   * Opens the file, or makes it with mode 0600, and replays it up to the last whole fact.
   * @throws {Error} a line before the last one is damaged: nothing is dropped in silence.
   */
  static async open<Fact>(path: string, options: JournalOptions<Fact>): Promise<Journal<Fact>> {
    const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o600);
    try {
      const bytes = await replay(file, path, options.replay);
      await file.truncate(bytes);
      return new Journal(path, options, file, bytes);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Resolves when the facts are on the disk; those of calls that come meanwhile are written together. */
  append(...facts: readonly Fact[]): Promise<void> {
    this.#unwritten.push(...facts.map(lineOf));
    this.#next ??= this.#writing = this.#writing.catch(() => undefined).then(() => this.#write());
    return this.#next;
  }

  /** Writes what is left, and closes the file. */
  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#file.close();
  }

  async #write(): Promise<void> {
    this.#next = undefined;
    const lines = this.#unwritten;
    this.#unwritten = [];
    const text = lines.join("");
    try {
      if (this.#bytes > Math.max(leastCompactedBytes, 2 * this.#compactedBytes)) await this.#compact();
      await this.#file.appendFile(text);
      await this.#file.datasync();
      this.#bytes += Buffer.byteLength(text);
    } catch (error) {
      // A disk that is full may have taken half of it.
      await this.#file.truncate(this.#bytes).catch(() => undefined);
      throw error;
    }
  }

  async #compact(): Promise<void> {
    const text = [...this.#options.facts()].map(lineOf).join("");
    const file = await open(`${this.#path}.new`, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(`${this.#path}.new`, this.#path);
    await syncFolder(dirname(this.#path));
    await this.#file.close();
    this.#file = await open(this.#path, constants.O_RDWR | constants.O_APPEND);
    this.#bytes = this.#compactedBytes = Buffer.byteLength(text);
  }
}

/** So that a new name in it outlives a loss of power. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function lineOf(fact: unknown): string {
  const json = JSON.stringify(fact);
  return `${sumOf(json)} ${json}\n`;
}

const sumOf = (json: string): string => crc32(json).toString(16).padStart(8, "0");

/** @returns the end of the last whole line. */
async function replay<Fact>(file: FileHandle, path: string, tell: (fact: Fact) => void): Promise<number> {
  let end = 0;
  let line = 0;
  let rest: Buffer = Buffer.alloc(0);
  let damaged: number | undefined;
  for await (const chunk of file.createReadStream({ autoClose: false, start: 0, highWaterMark: readBytes })) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    let from = 0;
    for (let to = rest.indexOf(newline); to !== -1; to = rest.indexOf(newline, from)) {
      line++;
      if (damaged !== undefined)
        throw new Error(`${path}:${damaged} is damaged: its checksum is wrong, and facts follow it.`);
      const [sum, json] = [rest.toString("latin1", from, from + 9), rest.toString("utf8", from + 9, to)];
      if (sum === `${sumOf(json)} `) {
        tell(JSON.parse(json) as Fact);
        end += to + 1 - from;
      } else damaged = line;
      from = to + 1;
    }
    rest = rest.subarray(from);
  }
  return end;
}
