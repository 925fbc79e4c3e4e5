import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { claimFolder, Journal, type FolderClaim } from "sheaf/internal/journal";
import { Problem } from "../../problems/problem.ts";
import { isOver, longestKeepS, type Sender, type StoredBatch, type StoredFile } from "./records.ts";

type Fact =
  | { readonly file: StoredFile }
  | { readonly batch: StoredBatch }
  | { readonly gone: string }
  | { readonly clockMs: number };

/** How often the folder's clock is saved while something can expire. */
const clockEveryMs = 10_000;
/** A finished batch is listed for the longest lifetime of results. */
const batchKeptMs = longestKeepS * 1000;
/** The largest share of the bytes for one of several tenants. */
const tenantPart = 0.5;
const openBatchesPerTenant = 16;

export interface StoreOptions {
  readonly folder: string;
  readonly maxBytes: number;
  readonly hasTenants: boolean;
  /** A clock that never steps. */
  readonly now: () => number;
}

/**
 * The files and batches of a folder, each change of which is in the journal before anyone is told. Time is the folder's own:
 * it goes on only while a server has the folder, so a wrong clock neither ends nor revives anything.
 */
export class Store {
  readonly files: Map<string, StoredFile> = new Map();
  readonly batches: Map<string, StoredBatch> = new Map();
  readonly maxBytes: number;
  /** Bytes of uploads in progress, by tenant. */
  readonly arriving: Map<string | null, number> = new Map();
  readonly #options: StoreOptions;
  readonly #claim: FolderClaim;
  #journal!: Journal<Fact>;
  #clockBaseMs = 0;
  readonly #openedAtMs: number;
  #clockWrittenAtMs = 0;

  private constructor(options: StoreOptions, claim: FolderClaim) {
    this.#options = options;
    this.#claim = claim;
    this.maxBytes = options.maxBytes;
    this.#openedAtMs = options.now();
  }

  static async open(options: StoreOptions): Promise<Store> {
    const store = new Store(options, await claimFolder(options.folder));
    try {
      await mkdir(join(options.folder, "files"), { recursive: true, mode: 0o700 });
      store.#journal = await Journal.open<Fact>(join(options.folder, "journal"), {
        replay: (fact) => store.#apply(fact),
        facts: () => store.#facts(),
      });
      await store.#removeStrays();
      return store;
    } catch (error) {
      await store.#claim.release();
      throw error;
    }
  }

  get nowMs(): number {
    return this.#clockBaseMs + this.#options.now() - this.#openedAtMs;
  }

  /** Ids are random, so that nobody can guess one, and never taken from a request. */
  newId(kind: "file" | "batch"): string {
    return `${kind}${kind === "file" ? "-" : "_"}${randomBytes(16).toString("hex")}`;
  }

  pathOf(fileId: string): string {
    return join(this.#options.folder, "files", fileId);
  }

  async put(...records: readonly (StoredFile | StoredBatch)[]): Promise<void> {
    const facts = records.map((record): Fact => ("bytes" in record ? { file: record } : { batch: record }));
    await this.#journal.append(...facts);
    for (const fact of facts) this.#apply(fact);
  }

  /** Sets state that is shown but not saved. */
  note(batch: StoredBatch): void {
    this.batches.set(batch.id, batch);
  }

  /** @throws where the journal cannot be written: the file stays. */
  async remove(id: string): Promise<void> {
    await this.#journal.append({ gone: id });
    this.#apply({ gone: id });
    await rm(this.pathOf(id), { force: true });
  }

  /** The sender's own file. @throws {Problem} 404 also for another's. */
  file(id: string, { tenant }: Sender): StoredFile {
    const file = this.files.get(id);
    if (file === undefined || file.sender.tenant !== tenant || this.#hasEnded(file.endsAtMs))
      throw notFound("file", id);
    return file;
  }

  /** @throws {Problem} 404 */
  batch(id: string, { tenant }: Sender): StoredBatch {
    const batch = this.batches.get(id);
    if (batch === undefined || batch.sender.tenant !== tenant) throw notFound("batch", id);
    return batch;
  }

  /** Bytes of all files or one tenant's, with results so far and uploads in progress. */
  bytes(tenant?: string | null): number {
    let sum = 0;
    const isCounted = (sender: Sender): boolean => tenant === undefined || sender.tenant === tenant;
    for (const file of this.files.values()) if (isCounted(file.sender)) sum += file.bytes;
    for (const batch of this.batches.values())
      if (!isOver(batch) && isCounted(batch.sender)) sum += batch.written.outputBytes + batch.written.errorBytes;
    for (const [name, bytes] of this.arriving) if (tenant === undefined || name === tenant) sum += bytes;
    return sum;
  }

  /** Why `more` bytes do not fit; undefined if they do. */
  fullFor({ tenant }: Sender, more: number): string | undefined {
    const { hasTenants } = this.#options;
    if (this.bytes() + more > this.maxBytes)
      return `The folder of batches is full (BATCHES_MAX_BYTES ${this.maxBytes}).`;
    if (hasTenants && this.bytes(tenant) + more > tenantPart * this.maxBytes)
      return `The files of ${tenant ?? "this tenant"} take all of its part of the folder of batches, half of BATCHES_MAX_BYTES.`;
    return undefined;
  }

  /** @throws {Problem} 429 */
  checkOpenBatches({ tenant }: Sender): void {
    const open = [...this.batches.values()].filter((batch) => batch.sender.tenant === tenant && !isOver(batch)).length;
    if (open < openBatchesPerTenant) return;
    const message = `At most ${openBatchesPerTenant} batches may be open; wait for one to end, or cancel one.`;
    throw new Problem("TENANT_LIMIT", message, { headers: { "retry-after": "60" } });
  }

  /** Removes what has expired, and saves the clock from time to time. */
  async tick(): Promise<void> {
    const isUsed = new Set([...this.batches.values()].flatMap((one) => (isOver(one) ? [] : [one.inputFileId])));
    for (const { id, endsAtMs } of this.files.values())
      if (this.#hasEnded(endsAtMs) && !isUsed.has(id)) await this.remove(id);
    for (const batch of this.batches.values())
      if (isOver(batch) && this.#hasEnded(batch.endsAtMs + batchKeptMs)) await this.remove(batch.id);
    if (this.files.size + this.batches.size > 0 && this.nowMs - this.#clockWrittenAtMs >= clockEveryMs)
      await this.#writeClock();
  }

  async close(): Promise<void> {
    await this.#writeClock().catch(() => undefined);
    await this.#journal.close();
    await this.#claim.release();
  }

  async #writeClock(): Promise<void> {
    this.#clockWrittenAtMs = this.nowMs;
    await this.#journal.append({ clockMs: this.nowMs });
  }

  #hasEnded(endsAtMs: number): boolean {
    return this.nowMs >= endsAtMs;
  }

  #apply(fact: Fact): void {
    if ("file" in fact) this.files.set(fact.file.id, fact.file);
    else if ("batch" in fact) this.batches.set(fact.batch.id, fact.batch);
    else if ("gone" in fact) {
      this.files.delete(fact.gone);
      this.batches.delete(fact.gone);
    } else if (this.#journal === undefined) this.#clockBaseMs = Math.max(this.#clockBaseMs, fact.clockMs);
  }

  *#facts(): Generator<Fact> {
    for (const file of this.files.values()) yield { file };
    for (const batch of this.batches.values()) yield { batch };
    yield { clockMs: this.nowMs };
  }

  /** Unfinished uploads, and files whose removal was interrupted. */
  async #removeStrays(): Promise<void> {
    const open = [...this.batches.values()].filter((batch) => !isOver(batch));
    const known = new Set([...this.files.keys(), ...open.flatMap((one) => [one.outputFileId, one.errorFileId])]);
    for (const name of await readdir(join(this.#options.folder, "files")))
      if (!known.has(name)) await rm(this.pathOf(name), { force: true });
  }
}

export const notFound = (kind: string, id: string): Problem =>
  new Problem("NOT_FOUND", `There is no ${kind} ${JSON.stringify(id.slice(0, 100))}.`, { param: "id" });
