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
  #compactedBytes: number;
  #unwritten: string[] = [];
  /** The write in progress, and those that follow it. */
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  private constructor(path: string, options: JournalOptions<Fact>, file: FileHandle, bytes: number) {
    this.#path = path;
    this.#options = options;
    this.#file = file;
    this.#bytes = this.#compactedBytes = bytes;
  }

  /**
   * Opens the file, or makes it with mode 0600, and replays it up to the last whole fact.
   * @throws {Error} a line before the last one is damaged: nothing is dropped in silence.
   */
  static async open<Fact>(path: string, options: JournalOptions<Fact>): Promise<Journal<Fact>> {
    const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o600);
    try {
      const content = await file.readFile("utf8");
      const end = replay(content, path, options.replay);
      const bytes = Buffer.byteLength(content.slice(0, end));
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
function replay<Fact>(content: string, path: string, tell: (fact: Fact) => void): number {
  let at = 0;
  for (let line = 1; at < content.length; line++) {
    const end = content.indexOf("\n", at);
    const json = content.slice(at + 9, end);
    if (end === -1 || content.slice(at, at + 9) !== `${sumOf(json)} `) {
      if (end === -1 || end === content.length - 1) return at;
      throw new Error(`${path}:${line} is damaged: its checksum is wrong, and facts follow it.`);
    }
    tell(JSON.parse(json) as Fact);
    at = end + 1;
  }
  return at;
}
