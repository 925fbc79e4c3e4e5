import { rm } from "node:fs/promises";
import { messageOf } from "../../problems/problem.ts";
import type { EndpointMatch } from "./endpoints.ts";
import { Feeder, type Ending, type Parts } from "./feeder.ts";
import { isOver, nothingWritten, type BatchStatus, type Sender, type StoredBatch, type StoredFile } from "./records.ts";

/** A batch as its client asks for it. */
export interface WantedBatch {
  readonly endpoint: string;
  readonly inputFileId: string;
  readonly completionWindow: string;
  readonly windowMs: number;
  readonly keepS: number;
  readonly metadata: Readonly<Record<string, string>> | null;
}

export interface BatchFigures {
  readonly batch: StoredBatch;
  readonly linesPerSecond: number;
  readonly idleMs: number;
}

const tickMs = 1000;
/** Batches that run at once, one per tenant; together they queue two runs ahead. */
const mostRunning = 8;

/** The batches of a server. Each is validated, fed to its model and finished; one per tenant runs at a time. */
export class Batches {
  readonly #parts: Parts;
  readonly #match: (endpoint: string) => EndpointMatch | undefined;
  readonly #running: Map<string, { readonly feeder: Feeder; readonly tenant: string | null; ended: Promise<void> }> =
    new Map();
  readonly #timer: NodeJS.Timeout;
  #isClosed = false;

  constructor(parts: Parts, match: (endpoint: string) => EndpointMatch | undefined) {
    this.#parts = parts;
    this.#match = match;
    this.#timer = setInterval(() => void this.tick(), tickMs).unref();
  }

  get #store(): Parts["store"] {
    return this.#parts.store;
  }

  async create(sender: Sender, wanted: WantedBatch): Promise<StoredBatch> {
    const store = this.#store;
    store.file(wanted.inputFileId, sender);
    store.checkOpenBatches(sender);
    const { windowMs, ...kept } = wanted;
    const createdAt = nowS();
    const batch: StoredBatch = {
      ...kept,
      id: store.newId("batch"),
      sender,
      outputFileId: store.newId("file"),
      errorFileId: store.newId("file"),
      createdAt,
      expiresAt: createdAt + Math.round(windowMs / 1000),
      endsAtMs: store.nowMs + windowMs,
      status: "validating",
      at: {},
      total: 0,
      model: null,
      written: nothingWritten,
      errors: [],
      paused: null,
      versions: [],
    };
    await store.put(batch);
    this.#start();
    return batch;
  }

  /** Results so far are kept. */
  async cancel(batch: StoredBatch): Promise<StoredBatch> {
    if (isOver(batch) || batch.status === "finalizing" || batch.status === "cancelling") return batch;
    await this.#become(batch.id, "cancelling");
    this.#running.get(batch.id)?.feeder.end("cancelled");
    this.#start();
    return this.#store.batches.get(batch.id)!;
  }

  /** Expires what is due, and starts what may run. */
  async tick(): Promise<void> {
    if (this.#isClosed) return;
    for (const batch of this.#open) if (this.#isLate(batch)) this.#running.get(batch.id)?.feeder.end("expired");
    this.#start();
    await this.#store.tick().catch((error: unknown) => this.#parts.app.log.warn(`Batches: ${messageOf(error)}`));
  }

  /** Open batches. Running batches also have their lines per second and the time since their last result. */
  figures(): readonly BatchFigures[] {
    const nowMs = performance.now();
    return this.#open.map((batch) => {
      const feeder = this.#running.get(batch.id)?.feeder;
      if (feeder === undefined) return { batch, linesPerSecond: 0, idleMs: 0 };
      const linesPerSecond = (1000 * feeder.results) / Math.max(1, nowMs - feeder.startedAtMs);
      return { batch, linesPerSecond, idleMs: nowMs - feeder.progressAtMs };
    });
  }

  /** Starts no more lines; the rest goes on in the next process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const { feeder } of this.#running.values()) feeder.end("closed");
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
    await this.#parts.thread.close();
    await this.#store.close();
  }

  get #open(): StoredBatch[] {
    return [...this.#store.batches.values()].filter((batch) => !isOver(batch));
  }

  #isLate({ endsAtMs }: StoredBatch): boolean {
    return this.#store.nowMs >= endsAtMs;
  }

  #start(): void {
    for (const batch of this.#open) {
      if (this.#isClosed || this.#running.has(batch.id)) continue;
      const { tenant } = batch.sender;
      const isBusy =
        this.#running.size >= mostRunning || [...this.#running.values()].some((one) => one.tenant === tenant);
      // A batch that only has to be finished needs no slot.
      if (isBusy && batch.status !== "cancelling" && !this.#isLate(batch)) continue;
      const entry = { feeder: new Feeder(batch, this.#parts), tenant, ended: Promise.resolve() };
      this.#running.set(batch.id, entry);
      entry.ended = this.#run(batch.id, entry.feeder)
        .catch((error: unknown) => this.#parts.app.log.error(`${batch.id} stopped: ${messageOf(error)}`))
        .finally(() => {
          this.#running.delete(batch.id);
          this.#start();
        });
    }
  }

  async #run(id: string, feeder: Feeder): Promise<void> {
    const { thread, store, maxLineBytes } = this.#parts;
    const batch = store.batches.get(id)!;
    if (batch.status === "validating" && !(await this.#check(batch))) return;
    const { inputFileId, outputFileId, errorFileId, written } = store.batches.get(id)!;
    const [input, output, errors] = [inputFileId, outputFileId, errorFileId].map((file) => store.pathOf(file)) as [
      string,
      string,
      string,
    ];
    await thread.do("open", { batch: id, input, output, errors, written, maxLineBytes });
    try {
      if (this.#is(id, "cancelling")) feeder.end("cancelled");
      if (this.#isLate(batch)) feeder.end("expired");
      const ending = this.#is(id, "finalizing") ? undefined : await feeder.run();
      if (ending === "closed") return;
      // A full disk may have room later.
      while (!(await this.#isEnded(id, feeder, ending))) {
        if (this.#isClosed) return;
        await new Promise((resolve) => setTimeout(resolve, tickMs).unref());
      }
    } finally {
      await thread.do("close", { batch: id });
    }
  }

  #is(id: string, status: BatchStatus): boolean {
    return this.#store.batches.get(id)?.status === status;
  }

  /** Reads the whole file before anything runs. @returns whether it may run. */
  async #check(batch: StoredBatch): Promise<boolean> {
    const { thread, store, models, maxLineBytes } = this.#parts;
    const { endpoint } = batch;
    const { total, model, errors } = await thread.do("check", {
      path: store.pathOf(batch.inputFileId),
      endpoint,
      pathModel: this.#match(endpoint)?.model,
      models: models.deployments.map(({ name }) => name),
      maxLineBytes,
    });
    if (this.#isClosed) return false;
    if (errors.length > 0) {
      await this.#become(batch.id, "failed", { errors, total });
      return false;
    }
    const status = this.#is(batch.id, "cancelling") ? "cancelling" : "in_progress";
    await this.#become(batch.id, status, { total, model: model ?? null });
    return true;
  }

  async #isEnded(id: string, feeder: Feeder, ending: Exclude<Ending, "closed"> | undefined): Promise<boolean> {
    const { thread, store } = this.#parts;
    try {
      if (ending === undefined && !this.#is(id, "finalizing")) await this.#become(id, "finalizing");
      if (ending === "expired") await thread.do("rest", { batch: id, code: "batch_expired", message: notRun });
      if (!(await feeder.checkpoint())) return false;
      const batch = store.batches.get(id)!;
      const status = ending ?? "completed";
      const createdAt = nowS();
      const { sender, keepS, outputFileId, errorFileId, written } = batch;
      const file = (fileId: string, bytes: number, what: string): StoredFile[] =>
        bytes === 0
          ? []
          : [{
              id: fileId, sender, bytes, filename: `${id}_${what}.jsonl`, purpose: "batch_output",
              createdAt, expiresAt: createdAt + keepS, endsAtMs: store.nowMs + 1000 * keepS,
            }]; // prettier-ignore
      const files = [
        ...file(outputFileId, written.outputBytes, "output"),
        ...file(errorFileId, written.errorBytes, "error"),
      ];
      await store.put(...files, changed(batch, status, { paused: null }));
      for (const fileId of [outputFileId, errorFileId])
        if (!store.files.has(fileId)) await rm(store.pathOf(fileId), { force: true });
      return true;
    } catch (error) {
      this.#parts.app.log.warn(`${id} cannot end yet: ${messageOf(error)}`);
      return false;
    }
  }

  async #become(id: string, status: BatchStatus, change: Partial<StoredBatch> = {}): Promise<void> {
    await this.#store.put(changed(this.#store.batches.get(id)!, status, change));
  }
}

const notRun = "This request could not be executed before the completion window expired.";

function changed(batch: StoredBatch, status: BatchStatus, change: Partial<StoredBatch>): StoredBatch {
  return { ...batch, ...change, status, at: { ...batch.at, [`${status}_at`]: batch.at[`${status}_at`] ?? nowS() } };
}

export const nowS = (): number => Math.floor(Date.now() / 1000);
