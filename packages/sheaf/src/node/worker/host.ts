import { checkResults } from "../../core/dispatch/run.ts";
import { BaseRunHandle } from "../../core/contract/base-run-handle.ts";
import { workerOf, type LoadedWorker, type RunContext } from "../contract/define-worker.ts";
import { encoderOf, type RowEncoder } from "../wire/encoded-rows.ts";
import { Kind, message, packError, packResults, type Message, type Port } from "../wire/message.ts";
import { unpack, type Packed } from "../wire/pack.ts";
import { lowerPriority } from "./priority.ts";

export interface HostOptions {
  readonly url: string;
  readonly data: unknown;
  readonly rowEncoder: string | undefined;
  /** How far the scheduling priority of the thread or process is lowered; 0 leaves it as it is. */
  readonly niceness: number;
  /** The most bytes that a result may take on its way. */
  readonly maxResultBytes: number;
}

export interface WorkerRuntime {
  readonly port: Port;
  /** Resolves when sent messages will survive the end of the worker; undefined where they always do. */
  sent(): Promise<void> | undefined;
  /** Memory of the worker in bytes; sampled at most once a second. */
  memoryBytes(): number;
  /** Ends the thread or process once sent messages are on their way. */
  exit(): void;
}

const memorySampleMs = 1000;

/** The worker's side: loads the module once, then runs batches one after the other, in the order they came. */
export class Host {
  readonly #home: WorkerRuntime;
  readonly #waiting: Message[] = [];
  // Batches whose callers have all left, and the controller of the running one if it was asked for.
  readonly #aborted = new Set<number>();
  #abortRunning: AbortController | undefined;
  #runningId = 0;
  #worker: LoadedWorker | undefined;
  #model: unknown;
  #encoder: RowEncoder | undefined;
  #maxResultBytes = Infinity;
  #running = false;
  #sampledAtMs = -Infinity;

  constructor(home: WorkerRuntime) {
    this.#home = home;
  }

  /** Loads the worker; messages that arrive meanwhile wait. */
  load(options: HostOptions): void {
    this.#running = true;
    void this.#load(options).then(() => this.#runWaiting());
  }

  async #load({ url, data, rowEncoder, niceness, maxResultBytes }: HostOptions): Promise<void> {
    const { port } = this.#home;
    try {
      lowerPriority(0, niceness);
      this.#maxResultBytes = maxResultBytes;
      const worker = workerOf((await import(url)) as { default?: unknown }, url);
      if (rowEncoder !== undefined)
        this.#encoder = encoderOf((await import(rowEncoder)) as Partial<RowEncoder>, rowEncoder);
      this.#model = await worker.load?.(data);
      port.send(message(Kind.warming));
      await worker.warmUp?.(this.#model);
      this.#worker = worker;
      port.send(message(Kind.ready));
    } catch (error) {
      port.send(message(Kind.loadFailed, 0, 0, packError(error)));
      this.#home.exit();
    }
  }

  receive(received: Message): void {
    if (received.kind === Kind.abort) return this.#abort(received.id);
    this.#waiting.push(received);
    if (!this.#running) void this.#runWaiting();
  }

  #abort(id: number): void {
    const known = id === this.#runningId || this.#waiting.some((waiting) => waiting.id === id);
    if (!known) return;
    this.#aborted.add(id);
    if (id === this.#runningId) this.#abortRunning?.abort();
  }

  async #runWaiting(): Promise<void> {
    this.#running = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (next.kind === Kind.close) await this.#close();
      else await this.#runBatch(next);
    }
    this.#running = false;
  }

  async #runBatch({ kind: wanted, id, value: attempt, packed }: Message): Promise<void> {
    const startedAtMs = performance.now();
    let reply: Packed;
    let kind: number = Kind.results;
    this.#runningId = id;
    try {
      if (this.#aborted.has(id)) throw new DOMException("Every caller of the batch has left.", "AbortError");
      const encoder = wanted === Kind.batchToEncode ? this.#encoder : undefined;
      const results = await this.#run(unpack(packed as Packed, "view"), id, attempt, encoder);
      reply = packResults(results, this.#maxResultBytes, encoder);
    } catch (error) {
      kind = Kind.failure;
      reply = packError(error);
    }
    const endedAtMs = performance.now();
    this.#runningId = 0;
    this.#abortRunning = undefined;
    this.#aborted.delete(id);
    this.#home.port.send(message(kind, id, endedAtMs - startedAtMs, reply, this.#memoryBytes(endedAtMs)));
    // A run that ends or blocks this process must not take or delay the results of the run before.
    const sent = this.#home.sent();
    if (sent !== undefined) await sent;
  }

  /** Returns the results of the items that were not answered early, in order. */
  async #run(
    items: unknown[],
    id: number,
    attempt: number,
    encoder: RowEncoder | undefined,
  ): Promise<ArrayLike<unknown>> {
    const handle = new AnswerHandle(id, items.length, (index, result) => {
      this.#home.port.send(message(Kind.answer, id, index, packResults([result], this.#maxResultBytes, encoder)));
    });
    const context = this.#context(id, attempt, handle);
    const worker = this.#worker as LoadedWorker;
    const model = this.#model;
    const prepared = worker.preprocess === undefined ? items : await worker.preprocess(items, model);
    try {
      const raw = await worker.run(prepared, model, context);
      const results = worker.postprocess === undefined ? raw : await worker.postprocess(prepared, raw, model);
      const open = handle.unanswered();
      const checked = checkResults(results, items.length, "the worker", open);
      return open === undefined ? checked : open.map((index) => checked[index]);
    } finally {
      handle.end();
    }
  }

  // A controller costs microseconds and most runs never look: made when `signal` is first read.
  #context(id: number, attempt: number, { answer }: AnswerHandle): RunContext {
    const signal = (): AbortSignal => {
      if (id !== this.#runningId) return AbortSignal.abort();
      this.#abortRunning ??= new AbortController();
      if (this.#aborted.has(id)) this.#abortRunning.abort();
      return this.#abortRunning.signal;
    };
    return {
      attempt,
      answer,
      get signal() {
        return signal();
      },
    };
  }

  #memoryBytes(nowMs: number): number {
    if (nowMs - this.#sampledAtMs < memorySampleMs) return 0;
    this.#sampledAtMs = nowMs;
    return this.#home.memoryBytes();
  }

  async #close(): Promise<void> {
    try {
      await this.#worker?.unload?.(this.#model);
    } catch (error) {
      console.error("Sheaf: unload failed:", error);
    }
    this.#home.exit();
  }
}

/** Sends the early answers of a run, one for each item at most. */
class AnswerHandle extends BaseRunHandle {
  readonly #send: (index: number, result: unknown) => void;

  constructor(id: number, size: number, send: (index: number, result: unknown) => void) {
    super(id, size);
    this.#send = send;
  }

  override deliver(index: number, result: unknown): boolean {
    if (this.isAnswered(index)) return false;
    // Sent first, then recorded: an answer that cannot be packed does not count.
    this.#send(index, result);
    return super.deliver(index, result);
  }
}
