import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { claimFolder, Journal, type FolderClaim } from "sheaf/internal/journal";

/** Where a result belongs, so that a later process finds it. */
export interface Origin {
  /** The model, its version and the API key, in one text. */
  readonly part: string;
  /** `itemKey` of its item. */
  readonly key: string;
  /** When it was asked for, by the wall clock. */
  readonly atMs: number;
}

/** A line of the file: an item is there as a hash only. */
interface Fact {
  readonly part: string;
  /** Base64. */
  readonly key: string;
  readonly atMs: number;
  readonly batchSize: number;
  /** The value as V8 serializes it, in base64. */
  readonly value: string;
}

export interface KeptResult extends Origin {
  readonly value: unknown;
  readonly batchSize: number;
}

interface Log {
  warn(fields: object, message: string): void;
}

/** Bytes that may wait for a slow disk; further results are kept in memory only. */
const mostUnwrittenBytes = 16_777_216;

/** The cached results in a folder, CACHE_DIR: what a cache held when its process ended, the next one finds. */
export class KeptResults {
  readonly #claim: FolderClaim;
  readonly #maxBytes: number;
  readonly #log: Log;
  /** Those of earlier processes whose part has not been opened yet, in the order in which they were kept. */
  readonly #waiting = new Map<string, Map<string, Fact>>();
  #journal!: Journal<Fact>;
  #unwrittenBytes = 0;
  #isFailing = false;
  /** The results that the cache holds; set by the cache. */
  held: () => Iterable<KeptResult> = () => [];

  private constructor(claim: FolderClaim, maxBytes: number, log: Log) {
    this.#claim = claim;
    this.#maxBytes = maxBytes;
    this.#log = log;
  }

  /**
   * `maxBytes` bounds the results of earlier processes that nobody has asked for yet.
   * @throws {Error} another process owns the folder, or its file is damaged.
   */
  static async open(folder: string, maxBytes: number, log: Log): Promise<KeptResults> {
    const claim = await claimFolder(folder);
    try {
      const kept = new KeptResults(claim, maxBytes, log);
      kept.#journal = await Journal.open<Fact>(join(folder, "results.journal"), {
        replay: (fact) => kept.#replay(fact),
        facts: () => kept.#facts(),
      });
      return kept;
    } catch (error) {
      await claim.release();
      throw error;
    }
  }

  /** The results of a part, oldest first, which are the cache's from now on. */
  *take(part: string): Generator<KeptResult> {
    const facts = this.#waiting.get(part);
    this.#waiting.delete(part);
    for (const { key, atMs, batchSize, value } of facts?.values() ?? [])
      try {
        yield { part, key: fromBase64(key).toString("latin1"), atMs, batchSize, value: deserialize(fromBase64(value)) };
      } catch {
        // Written by a Node whose format this one does not know: it runs again.
      }
  }

  add(result: KeptResult): void {
    if (this.#unwrittenBytes > mostUnwrittenBytes) return;
    const fact = factOf(result);
    const bytes = fact.value.length;
    this.#unwrittenBytes += bytes;
    void this.#journal
      .append(fact)
      .then(
        () => (this.#isFailing = false),
        (error: unknown) => {
          if (!this.#isFailing)
            this.#log.warn({ err: error }, "cached results cannot be written: a restart forgets them");
          this.#isFailing = true;
        },
      )
      .finally(() => (this.#unwrittenBytes -= bytes));
  }

  async close(): Promise<void> {
    await this.#journal.close();
    await this.#claim.release();
  }

  #replay(fact: Fact): void {
    const facts = this.#waiting.get(fact.part) ?? new Map<string, Fact>();
    this.#waiting.set(fact.part, facts);
    // The latest goes last.
    facts.delete(fact.key);
    facts.set(fact.key, fact);
  }

  *#facts(): Generator<Fact> {
    const waiting = [...this.#waiting.values()].flatMap((facts) => [...facts.values()]);
    let bytes = 0;
    // The newest: those of a model that is not served any more would stay for good.
    const kept = waiting
      .toSorted((a, b) => b.atMs - a.atMs)
      .filter(({ value }) => (bytes += value.length) <= this.#maxBytes);
    // The latest goes last, as in `#replay`.
    yield* kept.reverse();
    for (const result of this.held()) yield factOf(result);
  }
}

const factOf = ({ part, key, atMs, batchSize, value }: KeptResult): Fact => ({
  part,
  key: Buffer.from(key, "latin1").toString("base64"),
  atMs,
  batchSize,
  value: serialize(value).toString("base64"),
});

const fromBase64 = (text: string): Buffer => Buffer.from(text, "base64");
