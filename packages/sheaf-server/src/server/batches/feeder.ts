import type { FastifyInstance } from "fastify";
import { messageOf, Problem } from "../../problems/problem.ts";
import type { Callers } from "../../tenants/callers.ts";
import { onlyVersion } from "../contract/model-definition.ts";
import type { Models } from "../models/models.ts";
import type { ServedModel } from "../models/served-model.ts";
import { answerLine, type RouteReply } from "./line-request.ts";
import type { LineReply, LineRequest } from "./lines-thread.ts";
import type { StoredBatch } from "./records.ts";
import type { Store } from "./store.ts";
import type { LinesThread } from "./thread.ts";

export interface Parts {
  readonly app: FastifyInstance;
  readonly models: Models;
  readonly callers: Callers;
  readonly store: Store;
  readonly thread: LinesThread;
  readonly maxLineBytes: number;
  /** Items of all batches that wait or run, by model. */
  readonly ahead: Map<string, number>;
  /** Lines that have a result, since the start. */
  readonly lines: { ok: number; error: number };
}

/** Why a batch stops before its last line. `closed`: it goes on in the next process. */
export type Ending = "cancelled" | "expired" | "closed";

/** Runs ahead in the queue. */
const runsAhead = 2;
const checkpointMs = 1000;
/** Replies that are written together. */
const repliesAtOnce = 64;
/** Replies that may wait for a disk, in bytes. */
const mostUnwrittenBytes = 8_388_608;
/** Attempts at a line whose runs crash or hang; after the last, the error is its result. */
const mostTries = 3;
const patienceMs = 1000;

/** Runs the lines of one batch, in the bulk lane of its model's queue. */
export class Feeder {
  readonly #id: string;
  readonly #parts: Parts;
  #replies: LineReply[] = [];
  #unwrittenBytes = 0;
  /** Written since the last entry in the journal. */
  #uncountedBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #open = 0;
  #results = 0;
  /** Time of the last result. */
  progressAtMs: number = performance.now();
  readonly startedAtMs: number = performance.now();
  #ending: Ending | undefined;
  /** Why no line is started. */
  #blocked: string | null = null;
  /** Why the last lines were returned to the queue. */
  #refused: string | null = null;
  #serving: ServedModel | undefined;
  #versions: readonly string[];
  readonly #changed: Set<() => void> = new Set();

  constructor(batch: StoredBatch, parts: Parts) {
    this.#id = batch.id;
    this.#parts = parts;
    this.#versions = batch.versions;
  }

  /** Lines that got a result in this process, written or not. */
  get results(): number {
    return this.#results;
  }

  /** Starts no more lines; running lines still get their results. */
  end(why: Ending): void {
    this.#ending ??= why;
    this.#wake();
  }

  /** Feeds until every line has a result or `end` is called. @returns why it ended early. */
  async run(): Promise<Ending | undefined> {
    const timer = setInterval(() => void this.checkpoint(), checkpointMs).unref();
    try {
      await this.#feed();
      while (this.#open > 0) await this.#change();
      while (this.#ending !== "closed" && !(await this.checkpoint())) await this.#change(patienceMs);
      if (this.#ending === "closed") await this.checkpoint();
      return this.#ending;
    } finally {
      clearInterval(timer);
    }
  }

  /** Writes the replies so far and records that in the journal. @returns whether both succeeded. */
  async checkpoint(): Promise<boolean> {
    const { store, thread } = this.#parts;
    try {
      await this.#write();
      const written = await thread.do("sync", { batch: this.#id });
      const batch = this.#batch;
      this.#blocked = store.fullFor(batch.sender, 0) ?? null;
      const paused = this.#blocked ?? this.#refused;
      if (written.completed + written.failed !== batch.written.completed + batch.written.failed) {
        await store.put({ ...batch, written, paused, versions: this.#versions });
        this.#uncountedBytes = 0;
      } else if (paused !== batch.paused) store.note({ ...batch, paused });
      return true;
    } catch (error) {
      // Only its lines wait, not live requests.
      const paused = `Results cannot be written: ${messageOf(error)}`;
      if (this.#blocked === null) this.#parts.app.log.warn(`${this.#id} is paused. ${paused}`);
      this.#blocked = paused;
      store.note({ ...this.#batch, paused });
      return false;
    } finally {
      this.#wake();
    }
  }

  get #batch(): StoredBatch {
    return this.#parts.store.batches.get(this.#id)!;
  }

  get #model(): ServedModel | undefined {
    const { models } = this.#parts;
    const { model } = this.#batch;
    return model === null ? models.unnamed[0] : models.deployments.find(({ name }) => name === model)?.current;
  }

  async #feed(): Promise<void> {
    const { thread } = this.#parts;
    const next = (): Promise<LineRequest[]> =>
      thread.do("read", { batch: this.#id, items: this.#model?.maxBatchSize ?? 1 });
    let reading = next();
    for (;;) {
      const lines = await reading;
      if (lines.length === 0) return;
      const items = lines.reduce((sum, line) => sum + line.items, 0);
      while (this.#ending === undefined && !this.#hasRoom(items))
        await this.#change(this.#blocked === null ? 50 : patienceMs);
      if (this.#ending !== undefined) return;
      this.#noteVersion();
      for (const line of lines) void this.#runLine(line);
      reading = next();
    }
  }

  #hasRoom(items: number): boolean {
    if (this.#blocked !== null || this.#unwrittenBytes > mostUnwrittenBytes) return false;
    const model = this.#model;
    // A few lines probe whether it can run again.
    if (model === undefined || this.#refused !== null) return this.#open === 0;
    const ahead = this.#parts.ahead.get(model.name) ?? 0;
    if (ahead === 0) return true;
    const { bulk, inFlight } = model.batcher.pending;
    const most = runsAhead * model.maxBatchSize;
    return bulk + items <= most && ahead + items <= most + Math.max(1, inFlight) * model.maxBatchSize;
  }

  #noteVersion(): void {
    const model = this.#model;
    if (model === undefined || model === this.#serving) return;
    const version = model.definition.versionName ?? onlyVersion;
    if (this.#serving !== undefined || this.#versions.at(-1) !== version)
      this.#versions = [...this.#versions, version].slice(-mostVersions);
    this.#serving = model;
  }

  async #runLine(line: LineRequest): Promise<void> {
    const { ahead } = this.#parts;
    const model = this.#model?.name ?? "";
    const count = (items: number): unknown => ahead.set(model, (ahead.get(model) ?? 0) + items);
    this.#open++;
    count(line.items);
    try {
      for (let tries = 1; this.#ending === undefined; tries++) {
        const reply = await this.#answer(line);
        const againMs = this.#againAfterMs(reply, tries);
        if (againMs === undefined) return this.#replied(line, reply);
        const refused = this.#refusal(reply);
        if (refused !== undefined) this.#refused = refused;
        await this.#pause(againMs);
      }
    } finally {
      this.#open--;
      count(-line.items);
      this.#wake();
    }
  }

  async #answer({ body }: LineRequest): Promise<RouteReply> {
    const { app, callers } = this.#parts;
    const { endpoint, sender } = this.#batch;
    try {
      const caller = callers.recall(sender.key, sender.tenant);
      return await answerLine(app, `${app.prefix}${endpoint}`, body, caller);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return { status: error.status, headers: {}, body: Buffer.from(JSON.stringify({ detail: error.message })) };
    }
  }

  /** Undefined if the reply is the line's result, and not a failure of the server. */
  #againAfterMs({ status, headers, body }: RouteReply, tries: number): number | undefined {
    if (status < 400) return undefined;
    const isUnloaded = status === 404 && this.#model === undefined;
    if (status === 401 || status === 429 || status === 503 || isUnloaded)
      return Number(headers["retry-after-ms"] ?? 1000 * Number(headers["retry-after"] ?? 1));
    const code = codeIn(body);
    if (status === 504 && code === "TIMEOUT") return patienceMs;
    const isServers = status === 408 || status > 500 || code === "WORKER_CRASHED" || code === "INTERNAL";
    return isServers && tries < mostTries ? patienceMs : undefined;
  }

  /** The message of a reply after which no line of the batch can run. */
  #refusal({ status, body }: RouteReply): string | undefined {
    if (status === 429 || status === 504) return undefined;
    const { detail, error } = jsonIn(body) as { readonly detail?: string; readonly error?: string };
    return [detail, error].find((words) => typeof words === "string") ?? `Status ${status}.`;
  }

  #replied({ number, customId }: LineRequest, { status, headers, body }: RouteReply): void {
    this.#refused = null;
    this.#results++;
    this.#parts.lines[status < 400 ? "ok" : "error"]++;
    this.progressAtMs = performance.now();
    this.#replies.push({ number, customId, status, requestId: headers["x-request-id"] as string, body });
    this.#unwrittenBytes += body.length;
    if (this.#replies.length >= repliesAtOnce && this.#blocked === null)
      void this.#write().catch(() => this.checkpoint());
  }

  /** Writes the pending replies after the earlier ones. */
  #write(): Promise<void> {
    return (this.#writing = this.#writing.catch(() => undefined).then(() => this.#writeAll()));
  }

  async #writeAll(): Promise<void> {
    const replies = this.#replies;
    if (replies.length === 0) return;
    this.#replies = [];
    const { store, thread } = this.#parts;
    const bytes = replies.reduce((sum, { body }) => sum + body.length, 0);
    try {
      const full = store.fullFor(this.#batch.sender, this.#uncountedBytes + bytes);
      if (full !== undefined) throw new Error(full);
      await thread.do("write", { batch: this.#id, replies });
      this.#unwrittenBytes -= bytes;
      this.#uncountedBytes += bytes;
    } catch (error) {
      this.#replies = [...replies, ...this.#replies];
      throw error;
    }
  }

  #wake(): void {
    for (const wake of this.#changed) wake();
  }

  /** Resolves on a change, or after `ms`. */
  #change(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#changed.delete(done);
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(done, ms).unref();
      this.#changed.add(done);
    });
  }

  /** Resolves then, or when the batch ends. */
  async #pause(ms: number): Promise<void> {
    const untilMs = performance.now() + ms;
    for (let leftMs = ms; this.#ending === undefined && leftMs > 0; leftMs = untilMs - performance.now())
      await this.#change(leftMs);
  }
}

const mostVersions = 20;

function jsonIn(body: Uint8Array): Record<string, unknown> {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8")) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const codeIn = (body: Uint8Array): unknown => (jsonIn(body)["error"] as { code?: unknown } | undefined)?.code;
