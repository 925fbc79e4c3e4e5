import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Executor, RunHandle } from "../../core/contract/executor.ts";
import type { Clock } from "../../core/runtime/runtime.ts";
import { claimFolder, type FolderClaim } from "../../journal/claim.ts";
import { Journal } from "../../journal/journal.ts";
import { errorHints, isLostConnection } from "../api-client/api-error.ts";
import type { BatchState, Provider } from "./provider.ts";
import { BatchLineError, resultsIn } from "./results.ts";

/** A request of a file. */
export interface Line {
  /** Of its endpoint and its body: its name at the provider, and all that is kept of it. */
  readonly hash: string;
  /** As JSON. */
  readonly body: string;
  readonly model: string | undefined;
  readonly tokens: number;
}

/** Lines of batches that this process has waited for. */
export interface LineCounts {
  readonly submitted: number;
  readonly done: number;
  readonly failed: number;
}

export interface BatchRunsOptions {
  readonly endpoint: string;
  readonly resultOf: (reply: never) => unknown;
  readonly concurrency: number;
  readonly maxTokensWaiting: number;
  readonly pollMs: number;
  readonly folder: string | undefined;
  readonly clock: Clock;
}

/** What the journal knows of a file at the provider, and of its batch; a later fact adds to an earlier one. */
interface Fact {
  file: string;
  readonly model?: string | undefined;
  readonly attempt?: number;
  readonly tokens?: number;
  readonly lines?: readonly string[];
  id?: string | undefined;
  readonly isHandedOut?: boolean;
  readonly isGone?: true;
}

interface Batch extends Fact {
  readonly attempt: number;
  readonly tokens: number;
  readonly lines: readonly string[];
  /** Lines of which nobody has had the result. */
  readonly unread: Set<string>;
  readonly readers: Set<Reader>;
  state: BatchState | undefined;
  /** How often to look for a batch that an earlier request may have made, before another one is sent. */
  looksLeft: number;
  handedOutAtMs: number | undefined;
  isCancelled: boolean;
  serving: Promise<void> | undefined;
}

/** A run, whose lines may be in several batches. */
interface Reader {
  readonly handle: RunHandle;
  readonly places: ReadonlyMap<string, number>;
  readonly left: Map<string, Line>;
  readonly batches: Set<Batch>;
  attempt: number;
  isGone: boolean;
}

/** A provider may make a batch well after it has lost the connection. */
const looks = 6;
/** The wait between two looks at a batch grows to this many times `pollMs`. */
const slowest = 12;
/** For requests that nobody waits for, and for results that cannot be read. */
const fewTries = 5;
/** Time for callers to store what they got: for what a killed process had by then nothing is paid again. */
const keptMs = 3_600_000;
/** Beyond them the oldest batches that nobody asks for are given up. */
const mostKeptLines = 1_000_000;

/** Runs lines as batches of a provider: a run becomes a file, except for lines that are in a batch already. */
export class BatchRuns implements Executor<Line, unknown> {
  readonly slots: number;
  /** With a folder, batches then go on without this process. */
  isClosing = false;
  readonly #provider: Provider;
  readonly #options: BatchRunsOptions;
  readonly #batches = new Set<Batch>();
  readonly #byHash = new Map<string, Batch>();
  /** Those at the provider, or on the way there, that somebody waits for. */
  readonly #open = new Set<Batch>();
  readonly #ended = { submitted: 0, done: 0, failed: 0 };
  readonly #chores = new Set<Promise<unknown>>();
  readonly #timers = new Set<() => void>();
  #whenRoom: (() => void)[] = [];
  /** Calls were cut off: a list among them may have had some of its results. */
  #isCutOff = false;
  #journal: Journal<Fact> | undefined;
  #claim: FolderClaim | undefined;

  constructor(provider: Provider, options: BatchRunsOptions) {
    this.slots = options.concurrency;
    this.#provider = provider;
    this.#options = options;
  }

  async ready(): Promise<void> {
    const { folder, clock } = this.#options;
    if (folder === undefined) return;
    this.#claim = await claimFolder(folder);
    const known = new Map<string, Fact>();
    const replay = (fact: Fact): void => {
      if (fact.isGone) known.delete(fact.file);
      else known.set(fact.file, { ...known.get(fact.file), ...fact });
    };
    const facts = (): Fact[] => [...this.#batches].map(factOf);
    try {
      this.#journal = await Journal.open(join(folder, "batches"), { replay, facts });
    } catch (error) {
      await this.#claim.release();
      throw error;
    }
    for (const fact of known.values()) this.#add(batchOf(fact, looks));
    for (const batch of this.#batches)
      if (batch.isHandedOut === true || batch.unread.size === 0) batch.handedOutAtMs = clock.now();
  }

  run(lines: Line[], handle: RunHandle): Promise<[]> {
    const running = this.#run(lines, handle);
    this.#chore(() => running);
    return running;
  }

  async #run(lines: Line[], handle: RunHandle): Promise<[]> {
    const places = new Map(lines.map(({ hash }, place) => [hash, place]));
    const left = new Map(lines.map((line) => [line.hash, line]));
    const reader: Reader = { handle, places, left, batches: new Set(), attempt: 1, isGone: false };
    const aborted = new Promise<never>((_, reject) => handle.onAborted(reject));
    try {
      await Promise.race([this.#read(reader), aborted]);
    } finally {
      reader.isGone = true;
      this.#isCutOff ||= this.isClosing && reader.left.size > 0;
      for (const batch of reader.batches) this.#leave(batch, reader);
      this.#wake();
    }
    return [];
  }

  async close(): Promise<void> {
    await this.#choresDone();
    if (!this.#isCutOff) for (const batch of this.#batches) if (batch.handedOutAtMs !== undefined) this.#release(batch);
    await this.#choresDone();
    for (const cancel of this.#timers) cancel();
    await this.#journal?.close();
    await this.#claim?.release();
  }

  counts(): LineCounts {
    const counts = { ...this.#ended };
    for (const batch of this.#open) addTo(counts, batch);
    return counts;
  }

  /** Lines that fail go once more, in a file of their own. */
  async #read(reader: Reader): Promise<void> {
    this.#tidy();
    for (; reader.left.size > 0 && !reader.isGone; reader.attempt++) {
      const known = new Set<Batch>();
      const fresh: Line[] = [];
      for (const line of reader.left.values()) {
        const batch = this.#byHash.get(line.hash);
        if (batch === undefined) fresh.push(line);
        else known.add(batch);
      }
      const reading = [...known].map((batch) => this.#follow(batch, reader));
      if (fresh.length > 0) reading.push(this.#submit(fresh, reader));
      await Promise.all(reading);
    }
  }

  async #submit(fresh: readonly Line[], reader: Reader): Promise<void> {
    const lines = fresh.map(({ hash }) => hash);
    const tokens = fresh.reduce((sum, line) => sum + line.tokens, 0);
    const batch = batchOf({ file: "", model: fresh[0]!.model, attempt: reader.attempt, tokens, lines });
    const url = JSON.stringify(this.#options.endpoint);
    const parts = fresh.map(
      ({ hash, body }) => `{"custom_id":"${hash}","method":"POST","url":${url},"body":${body}}\n`,
    );
    try {
      await this.#room(batch, reader);
      const file = new File(parts, "sheaf.jsonl", { type: "application/jsonl" });
      batch.file = await this.#patiently(() => this.#provider.upload(file), () => !reader.isGone); // prettier-ignore
      await this.#journal?.append(factOf(batch));
      this.#add(batch);
      if (!reader.isGone) return await this.#follow(batch, reader);
      this.#release(batch);
    } catch (error) {
      // Lines of other batches go on.
      for (const hash of lines) this.#answer(batch, reader, hash, asError(error));
      if (batch.file !== "") this.#chore(() => this.#patiently(() => this.#provider.remove(batch.file), few));
    } finally {
      // Where it was followed it is closed already.
      this.#shut(batch);
    }
  }

  /** Waits until fewer batches are open, with fewer tokens. */
  async #room(batch: Batch, reader: Reader): Promise<void> {
    const { concurrency, maxTokensWaiting } = this.#options;
    const tokens = (): number => [...this.#open].reduce((sum, open) => sum + open.tokens, batch.tokens);
    while (this.#open.size > 0 && (this.#open.size >= concurrency || tokens() > maxTokensWaiting)) {
      await new Promise<void>((resolve) => this.#whenRoom.push(resolve));
      if (reader.isGone) throw new Error("Nobody waits for these lines.");
    }
    this.#open.add(batch);
  }

  /** Resolves when each line that the reader wants of the batch is answered, or has failed once. */
  async #follow(batch: Batch, reader: Reader): Promise<void> {
    batch.readers.add(reader);
    reader.batches.add(batch);
    // One that comes while the results are read is served by reading them again.
    while (batch.readers.has(reader)) await this.#serving(batch);
  }

  #serving(batch: Batch): Promise<void> {
    if (batch.state?.isOver !== true) this.#open.add(batch);
    return (batch.serving ??= this.#serve(batch).finally(() => (batch.serving = undefined)));
  }

  async #serve(batch: Batch): Promise<void> {
    try {
      const state = await this.#over(batch);
      const readers = [...batch.readers];
      if (state !== undefined && readers.length > 0) {
        const isWanted = (): boolean => readers.some(({ isGone }) => !isGone);
        await this.#patiently(() => this.#readResults(batch, state, readers), isWanted);
        const reason = new BatchLineError(`The provider has no result for this line: ${state.reason}`);
        for (const reader of readers) this.#fail(batch, reader, reason, state.isCancelled);
      } else if (!batch.isCancelled) return;
      for (const reader of readers) batch.readers.delete(reader);
    } catch (error) {
      const isLost = errorHints(error).status === 404 || error instanceof SyntaxError;
      for (const reader of batch.readers) this.#fail(batch, reader, error, !isLost);
      batch.readers.clear();
      // Another try may read it yet, with another key say.
      if (batch.id !== undefined && !isLost) return this.#shut(batch);
      batch.unread.clear();
    }
    this.#shut(batch);
    if (batch.unread.size === 0 && batch.handedOutAtMs === undefined) this.#handedOut(batch);
  }

  /** Polls until the batch is over; undefined where nobody waits for it any more, or there is none to be cancelled. */
  async #over(batch: Batch): Promise<BatchState | undefined> {
    for (let polls = 0; batch.state?.isOver !== true; polls++) {
      let failure: unknown;
      try {
        if (batch.readers.size === 0 && !batch.isCancelled) return undefined;
        if (batch.id === undefined) {
          await this.#make(batch);
          if (batch.isCancelled) this.#cancel(batch);
        }
        if (batch.id !== undefined) batch.state = await this.#provider.retrieve(batch.id);
        else if (batch.isCancelled && batch.looksLeft === 0) return undefined;
        if (batch.state?.isOver) break;
      } catch (error) {
        if (!isPassing(error)) throw error;
        failure = error;
      }
      await this.#pause(polls, failure);
    }
    return batch.state;
  }

  /** Finds the batch of a file, or makes it. After a lost reply none is made before the provider has been asked. */
  async #make(batch: Batch): Promise<void> {
    const { file, model, lines } = batch;
    const { endpoint } = this.#options;
    if (batch.looksLeft > 0) {
      batch.id = (await this.#provider.find(file))?.id;
      if (batch.id === undefined && --batch.looksLeft > 0) return;
    }
    if (batch.id === undefined) {
      if (batch.isCancelled) return;
      batch.looksLeft = looks;
      const metadata = { sheaf_sha256: hashOf(lines.join("\n")) };
      try {
        batch.id = (await this.#provider.create({ file, endpoint, model, metadata })).id;
      } catch (error) {
        const { status = 500 } = errorHints(error);
        if (status < 500 && status !== 408 && status !== 409) batch.looksLeft = 0;
        throw error;
      }
    }
    // Without this fact the next process finds it by its file.
    await this.#journal?.append({ file, id: batch.id }).catch(() => undefined);
  }

  async #readResults(batch: Batch, { files }: BatchState, readers: readonly Reader[]): Promise<void> {
    for (const file of files)
      for await (const { id, body, error } of resultsIn(await this.#provider.content(file), this.#options.clock))
        for (const reader of readers) {
          if (!reader.left.has(id) || this.#byHash.get(id) !== batch) continue;
          if (error === undefined) this.#answer(batch, reader, id, this.#resultOf(body));
          else this.#failLine(batch, reader, id, error, false);
        }
  }

  #resultOf(reply: unknown): unknown {
    try {
      return this.#options.resultOf(reply as never);
    } catch (error) {
      return asError(error);
    }
  }

  #answer(batch: Batch, { handle, places, left }: Reader, hash: string, result: unknown): void {
    left.delete(hash);
    batch.unread.delete(hash);
    handle.answer(places.get(hash)!, result);
  }

  #fail(batch: Batch, reader: Reader, error: unknown, isFinal: boolean): void {
    for (const hash of reader.left.keys()) this.#failLine(batch, reader, hash, error, isFinal);
  }

  #failLine(batch: Batch, reader: Reader, hash: string, error: unknown, isFinal: boolean): void {
    if (this.#byHash.get(hash) !== batch) return;
    // Who asks for it again gets another line, and not this error.
    if (batch.id === undefined || batch.state?.isOver === true) this.#forget(batch, [hash]);
    if (isFinal || reader.attempt > 1 || batch.attempt > 1) this.#answer(batch, reader, hash, asError(error));
  }

  /** A run has all its results, or its callers have left. */
  #leave(batch: Batch, reader: Reader): void {
    batch.readers.delete(reader);
    const goesOn = this.isClosing && this.#journal !== undefined;
    if (batch.readers.size > 0 || !this.#open.has(batch) || goesOn) return;
    batch.isCancelled = true;
    this.#forget(batch, batch.lines);
    this.#cancel(batch);
    this.#serving(batch).catch(() => undefined);
  }

  #cancel({ id }: Batch): void {
    if (id !== undefined) this.#chore(() => this.#patiently(() => this.#provider.cancel(id), few));
  }

  #handedOut(batch: Batch): void {
    if (this.#journal === undefined || batch.isCancelled) return this.#release(batch);
    batch.handedOutAtMs = this.#options.clock.now();
    this.#journal.append({ file: batch.file, isHandedOut: true }).catch(() => undefined);
  }

  /** Lets go of batches that nobody is expected to ask for any more. */
  #tidy(): void {
    const latestAtMs = this.#options.clock.now() - keptMs;
    for (const batch of this.#batches) {
      const isOld = batch.handedOutAtMs !== undefined && batch.handedOutAtMs < latestAtMs;
      if (batch.readers.size === 0 && (isOld || this.#byHash.size > mostKeptLines)) this.#release(batch);
    }
  }

  /** Deletes its files at the provider, and forgets it. What fails is left to the next process, or to the provider. */
  #release(batch: Batch): void {
    if (!this.#batches.delete(batch)) return;
    this.#forget(batch, batch.lines);
    const { id, file } = batch;
    this.#chore(async () => {
      if (id !== undefined) batch.state ??= await this.#patiently(() => this.#provider.retrieve(id), few);
      for (const each of [file, ...(batch.state?.files ?? [])])
        await this.#patiently(() => this.#provider.remove(each), few).catch(unlessMissing);
      await this.#journal?.append({ file, isGone: true });
    });
  }

  #chore(work: () => Promise<unknown>): void {
    const chore = work().catch(() => undefined);
    this.#chores.add(chore);
    void chore.then(() => this.#chores.delete(chore));
  }

  async #choresDone(): Promise<void> {
    while (this.#chores.size > 0) await Promise.all(this.#chores);
  }

  #add(batch: Batch): void {
    this.#batches.add(batch);
    for (const hash of batch.lines) {
      // It failed in the other batch.
      this.#byHash.get(hash)?.unread.delete(hash);
      this.#byHash.set(hash, batch);
    }
  }

  #forget(batch: Batch, hashes: Iterable<string>): void {
    for (const hash of hashes) {
      batch.unread.delete(hash);
      if (this.#byHash.get(hash) === batch) this.#byHash.delete(hash);
    }
  }

  /** It is over, or nobody waits for it: others have its room. */
  #shut(batch: Batch): void {
    if (!this.#open.delete(batch)) return;
    if (batch.id !== undefined) addTo(this.#ended, batch);
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#whenRoom.splice(0)) resolve();
  }

  /** Repeats what the provider fails while somebody waits for it. */
  async #patiently<T>(ask: () => PromiseLike<T>, isWanted: (tries: number) => boolean): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await ask();
      } catch (error) {
        const mayPass = isPassing(error) || (error instanceof SyntaxError && few(tries));
        if (!mayPass || !isWanted(tries)) throw error;
        await this.#pause(tries, error);
      }
    }
  }

  #pause(tries: number, failure: unknown): Promise<void> {
    const { pollMs, clock } = this.#options;
    const { retryAfterMs = 0 } = errorHints(failure);
    return new Promise((resolve) => {
      const cancel = clock.after(Math.max(retryAfterMs, pollMs * Math.min(slowest, 1.5 ** tries)), () => {
        this.#timers.delete(cancel);
        resolve();
      });
      this.#timers.add(cancel);
    });
  }
}

export const hashOf = (text: string): string => createHash("sha256").update(text).digest("base64url");

const batchOf = (fact: Fact, looksLeft = 0): Batch => {
  const { attempt = 1, tokens = 0, lines = [] } = fact;
  const [unread, readers] = [new Set(lines), new Set<Reader>()];
  const atProvider = { state: undefined, looksLeft, handedOutAtMs: undefined, isCancelled: false, serving: undefined };
  return { ...fact, attempt, tokens, lines, unread, readers, ...atProvider };
};

const factOf = ({ file, model, attempt, tokens, lines, id, handedOutAtMs }: Batch): Fact => {
  const isHandedOut = handedOutAtMs !== undefined;
  return { file, model, attempt, tokens, lines, id, isHandedOut };
};

function addTo(counts: { submitted: number; done: number; failed: number }, { lines, state }: Batch): void {
  counts.submitted += lines.length;
  counts.done += state?.done ?? 0;
  counts.failed += state?.failed ?? 0;
}

const few = (tries: number): boolean => tries < fewTries;

/** The provider may succeed later. */
function isPassing(error: unknown): boolean {
  const { status } = errorHints(error);
  if (status === undefined) return isLostConnection(error);
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

function unlessMissing(error: unknown): void {
  if (errorHints(error).status !== 404) throw error;
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
