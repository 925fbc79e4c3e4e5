import { BatcherError } from "../../core/errors.ts";
import type { CallOptions } from "../../core/options.ts";
import type { BatcherStats } from "../../core/stats.ts";
import type { Answer } from "./answer.ts";
import type { NatsMessage } from "./client.ts";
import { DeadLetters } from "./dead-letters.ts";
import { ackSubject, keyOf, pack, unpack, type ReplyHead, type RequestHead } from "./envelope.ts";
import { NatsQueueError, rebuildError } from "./errors.ts";
import { laneFigures, type LaneFigures } from "./figures.ts";
import { Link } from "./link.ts";
import { QueueKeeper } from "./queue-keeper.ts";
import { newInbox, type QueueSettings } from "./queue-options.ts";
import { SeenBatches, type Outcome } from "./seen-batches.ts";
import { namesOf, type QueueNames } from "./topology.ts";
import { WorkersSeen, type WorkerInfo } from "./workers-seen.ts";

/** One call, from its publish to its answer. */
interface Call {
  readonly head: RequestHead;
  readonly payload: Uint8Array;
  readonly subject: string;
  readonly arrivedAtMs: number;
  resolve(answer: Answer<unknown>): void;
  reject(error: unknown): void;
  /** Resolves its admission: with the refusal, or with nothing. Undefined once the queue has it. */
  admitted: ((refusal?: Error) => void) | undefined;
  publishedAtMs: number;
  publishes: number;
  /** Its number in the stream, once the queue has it. */
  sequence: number | undefined;
  release(): void;
}

export interface StartedCall {
  readonly answer: Promise<Answer<unknown>>;
  /** Resolves when the queue has taken it, with nothing, or refused it, with the reason. */
  readonly admission: Promise<Error | undefined>;
  /** Ends the call with `reason`, unless it has ended. */
  withdraw(reason: unknown): void;
}

/** A publish without an answer is repeated after this; the queue takes the same message only once. */
const ackTimeoutMs = 2000;
const mostPublishes = 3;
/** More publishes than this without the queue's word mean that it can not keep up. */
const mostUnanswered = 10_000;
/** What NATS' own framing and headers may take of a message. */
const headersBytes = 256;

/** The calls of a front end, by number: each settles exactly once, whatever arrives, twice or never. */
export class Calls {
  readonly workers: WorkersSeen;
  readonly batches: SeenBatches;
  readonly #settings: QueueSettings;
  readonly #name: string;
  readonly #names: QueueNames;
  readonly #link: Link;
  readonly #inbox: string;
  readonly #open: Map<string, Call> = new Map();
  /** Those that the queue has not acknowledged, oldest publish first. */
  readonly #unanswered: Map<string, Call> = new Map();
  readonly #deadLetters: DeadLetters;
  readonly #keeper: QueueKeeper;
  readonly #ready: Promise<void>;
  #isReady: () => void = () => undefined;
  #streamCreated: string | undefined;
  #acceptedBeforeCut: readonly Call[] = [];
  #next = 0;
  #lateReplies = 0;
  #republished = 0;
  #closing: Promise<void> | undefined;
  #whenEmpty: (() => void) | undefined;
  #cancelSweep: (() => void) | undefined;

  constructor(settings: QueueSettings, { name, maxBatchSize }: { name: string; maxBatchSize: number }) {
    this.#settings = settings;
    this.#name = name;
    this.#names = namesOf(settings);
    this.workers = new WorkersSeen(settings.clock);
    this.batches = new SeenBatches(name, maxBatchSize);
    this.#inbox = newInbox(settings);
    this.#ready = new Promise((resolve) => (this.#isReady = resolve));
    this.#link = new Link(settings.connection, {
      disconnected: () => this.#disconnected(),
      reconnected: () => this.#keeper.keep(),
      closed: () => this.#failAll(unavailable(`${name}: the NATS connection is closed.`)),
    });
    this.#keeper = new QueueKeeper(settings, "front-end", (created) => this.#kept(created));
    this.#deadLetters = new DeadLetters(settings, this.#names, this.#link);
    this.#link.subscribe(`${this.#inbox}.*`, (message) => this.#received(message));
    this.#link.subscribe(this.#names.alive, ({ data }) => this.#heard(data));
    if (settings.durability !== "none") this.#deadLetters.watch();
    this.#keeper.keep();
  }

  get isConnected(): boolean {
    return this.#link.isConnected;
  }

  get counts(): { lateReplies: number; deadLetters: number; republished: number } {
    return {
      lateReplies: this.#lateReplies,
      deadLetters: this.#deadLetters.count,
      republished: this.#republished,
    };
  }

  ready(): Promise<void> {
    return this.#ready;
  }

  figures(): Promise<LaneFigures[]> {
    return laneFigures(this.#settings);
  }

  stats(): BatcherStats {
    return this.batches.stats(this.#open.size, this.#settings.clock.now());
  }

  start(
    item: unknown,
    options: CallOptions & { readonly timeoutMs: number; readonly traceparent?: string | undefined },
  ): StartedCall {
    let call: Call | undefined;
    let admitted: (refusal?: Error) => void = () => undefined;
    const admission = new Promise<Error | undefined>((resolve) => (admitted = resolve));
    const answer = new Promise<Answer<unknown>>((resolve, reject) => {
      try {
        call = this.#enter(item, options, { resolve, reject, admitted });
      } catch (error) {
        this.batches.tally[options.signal?.aborted === true ? "aborted" : "rejected"]++;
        admitted(error as Error);
        reject(error);
      }
    });
    return {
      answer,
      admission,
      withdraw: (reason) => {
        if (call !== undefined) this.#cancel(call, "rejected", reason);
      },
    };
  }

  async close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    const empty = new Promise<void>((resolve) => (this.#whenEmpty = resolve));
    if (this.#open.size === 0) this.#whenEmpty?.();
    const error = new BatcherError("CLOSED", `${this.#name}: closed; the call was cut off after ${graceMs} ms.`);
    const cancel = graceMs === Infinity ? undefined : this.#settings.clock.after(graceMs, () => this.#failAll(error));
    await empty;
    cancel?.();
    this.#cancelSweep?.();
    this.#keeper.stop();
    this.#link.leave();
  }

  #enter(
    item: unknown,
    options: CallOptions & { readonly timeoutMs: number; readonly traceparent?: string | undefined },
    settle: Pick<Call, "resolve" | "reject" | "admitted">,
  ): Call {
    const { signal, timeoutMs, priority = "interactive", traceparent } = options;
    if (signal?.aborted === true) throw signal.reason;
    if (this.#closing !== undefined) throw new BatcherError("CLOSED", `${this.#name}: closed; it takes no more calls.`);
    if (!(timeoutMs > 0) || timeoutMs > this.#settings.maxAgeMs)
      throw new RangeError(`timeoutMs must be above 0 and at most ${this.#settings.maxAgeMs}, got ${timeoutMs}`);
    if (!this.isConnected) throw unavailable(`${this.#name}: the connection to NATS is down.`);
    if (this.#unanswered.size >= mostUnanswered)
      throw new BatcherError("QUEUE_FULL", `${this.#name}: ${mostUnanswered} publishes wait for NATS.`, {});
    const head: RequestHead = { f: this.#inbox, i: (this.#next++).toString(36), d: timeoutMs, t: traceparent };
    const payload = pack(head, this.#settings.codec.encode(item));
    this.#checkSize(payload.byteLength);
    const nowMs = this.#settings.clock.now();
    const onAbort = (): void => this.#cancel(call, "aborted", signal?.reason);
    const cancelTimer = this.#settings.clock.after(timeoutMs, () =>
      this.#cancel(call, "timeout", timedOut(this.#name, timeoutMs)),
    );
    const call: Call = {
      ...settle,
      head,
      payload,
      subject: this.#names.lane(priority),
      arrivedAtMs: nowMs,
      publishedAtMs: nowMs,
      publishes: 0,
      sequence: undefined,
      release: () => {
        cancelTimer();
        signal?.removeEventListener("abort", onAbort);
      },
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#open.set(head.i, call);
    try {
      this.#publish(call);
    } catch (error) {
      this.#open.delete(head.i);
      this.#unanswered.delete(head.i);
      call.release();
      throw error;
    }
    return call;
  }

  #checkSize(bytes: number): void {
    const most = (this.#settings.connection.info?.max_payload ?? Infinity) - headersBytes;
    if (bytes <= most) return;
    throw new BatcherError(
      "ITEM_TOO_LARGE",
      `${this.#name}: the item takes ${bytes} bytes, the NATS server at most ${most} (its max_payload less headers).`,
      { bytes, most },
    );
  }

  #publish(call: Call): void {
    const { head, payload, subject } = call;
    call.publishes++;
    call.publishedAtMs = this.#settings.clock.now();
    const reply = ackSubject(this.#inbox, head.i);
    this.#unanswered.delete(head.i);
    this.#unanswered.set(head.i, call);
    if (this.#settings.durability === "none") {
      this.#link.publish(subject, payload, { reply });
      // Core NATS says nothing of a message that somebody takes.
      this.#accept(call, undefined);
      return;
    }
    const headers = this.#settings.headers();
    headers.set("Nats-Msg-Id", keyOf(head));
    this.#link.publish(subject, payload, { reply, headers });
    this.#cancelSweep ??= this.#settings.clock.after(ackTimeoutMs / 4, () => this.#sweep());
  }

  /** Repeats publishes that nobody answered, or gives them up. */
  #sweep(): void {
    this.#cancelSweep = undefined;
    const sinceMs = this.#settings.clock.now() - ackTimeoutMs;
    for (const call of this.#unanswered.values()) {
      if (call.publishedAtMs > sinceMs) break;
      if (call.publishes >= mostPublishes) {
        this.#cancel(call, "rejected", unavailable(`${this.#name}: JetStream took no word of the item.`));
      } else {
        this.#republished++;
        this.#publish(call);
      }
    }
    if (this.#unanswered.size > 0 && this.#closing === undefined)
      this.#cancelSweep ??= this.#settings.clock.after(ackTimeoutMs / 4, () => this.#sweep());
  }

  #received(message: NatsMessage): void {
    const token = message.subject.slice(this.#inbox.length + 1);
    const call = this.#open.get(token.slice(1));
    if (token.startsWith("q")) {
      if (isSubject(message.reply)) this.#link.publish(message.reply, call === undefined ? "0" : "1");
    } else if (token.startsWith("a")) {
      if (call !== undefined) this.#acknowledged(call, message);
    } else {
      this.#replied(call, message);
    }
  }

  #acknowledged(call: Call, { headers, data }: NatsMessage): void {
    if (headers?.code === 503) {
      this.#keeper.keepSoon();
      const nobody = this.#settings.durability === "none" ? "no worker listens" : "JetStream has no such queue yet";
      return this.#end(call, "rejected", unavailable(`${this.#name}: ${nobody}.`));
    }
    const { error, seq } = JSON.parse(new TextDecoder().decode(data)) as PublishAck;
    if (error === undefined) return this.#accept(call, seq);
    const { maxQueueSize } = this.#settings;
    if (error.err_code === queueFull)
      return this.#end(
        call,
        "rejected",
        new BatcherError(
          "QUEUE_FULL",
          `${this.#name}: the lane is full (${maxQueueSize} items): ${error.description}.`,
          {
            maxQueueSize,
          },
        ),
      );
    this.#end(call, "rejected", unavailable(`${this.#name}: JetStream refuses the item: ${error.description}.`));
  }

  #accept(call: Call, sequence: number | undefined): void {
    this.#unanswered.delete(call.head.i);
    call.sequence = sequence;
    call.admitted?.();
    call.admitted = undefined;
  }

  #replied(call: Call | undefined, { data }: NatsMessage): void {
    const { head, body } = unpack<ReplyHead>(data);
    // This, and not the worker's word, takes it out of the queue: a result that does not arrive is worked out again.
    if (head.a?.startsWith("$JS.ACK.") === true) this.#link.publish(head.a);
    if (call === undefined) {
      this.#lateReplies++;
      return;
    }
    const nowMs = this.#settings.clock.now();
    const latencyMs = nowMs - call.arrivedAtMs;
    const queueMs = Math.max(0, latencyMs - head.m);
    this.batches.answered(head, queueMs, nowMs);
    this.batches.latencyMs.record(nowMs, latencyMs);
    if (head.e !== undefined) return this.#end(call, "error", rebuildError(head.e));
    let value: unknown;
    try {
      value = this.#settings.codec.decode(body);
    } catch (error) {
      return this.#end(call, "error", error);
    }
    if (!this.#forget(call, "ok")) return;
    call.resolve({ value, batchSize: head.n, queueMs, deliveries: head.c });
  }

  /** The caller has gone: nobody needs to run it. */
  #cancel(call: Call, outcome: Outcome, reason: unknown): void {
    if (!this.#open.has(call.head.i)) return;
    this.#end(call, outcome, reason);
    this.#link.publish(this.#names.cancel, keyOf(call.head));
    if (call.sequence !== undefined)
      this.#link.publish(
        `$JS.API.STREAM.MSG.DELETE.${this.#names.stream}`,
        JSON.stringify({ seq: call.sequence, no_erase: true }),
      );
  }

  #end(call: Call, outcome: Outcome, error: unknown): void {
    if (!this.#forget(call, outcome)) return;
    call.admitted?.(error as Error);
    call.reject(error);
  }

  /** False where it has ended already. */
  #forget(call: Call, outcome: Outcome): boolean {
    if (!this.#open.delete(call.head.i)) return false;
    this.#unanswered.delete(call.head.i);
    call.release();
    if (outcome === "ok") call.admitted?.();
    this.batches.tally[outcome]++;
    if (this.#open.size === 0) this.#whenEmpty?.();
    return true;
  }

  #disconnected(): void {
    const error = unavailable(`${this.#name}: the connection to NATS went down.`);
    // Whether these were taken nobody knows, and the caller may try again elsewhere at once.
    const lost = this.#settings.durability === "none" ? this.#open : this.#unanswered;
    for (const call of lost.values()) this.#end(call, "rejected", error);
    this.#acceptedBeforeCut = [...this.#open.values()];
  }

  #failAll(error: unknown): void {
    for (const call of this.#open.values()) this.#cancel(call, "rejected", error);
  }

  #kept(created: string): void {
    if (this.#streamCreated !== undefined && this.#streamCreated !== created) this.#lostQueue();
    this.#streamCreated = created;
    this.#link.publish(this.#names.who);
    if (this.workers.list().length > 0) this.#isReady();
  }

  /** What had been accepted before the cut went with the stream. */
  #lostQueue(): void {
    const error = unavailable(`${this.#name}: the NATS server lost the queue and with it the item.`);
    for (const call of this.#acceptedBeforeCut) this.#end(call, "error", error);
  }

  #heard(data: Uint8Array): void {
    this.workers.heard(JSON.parse(new TextDecoder().decode(data)) as WorkerInfo);
    if (this.#streamCreated !== undefined && this.workers.list().length > 0) this.#isReady();
  }
}

/** The client gives an empty text where there is none. */
const isSubject = (reply: string | undefined): reply is string => reply !== undefined && reply !== "";

/** JetStream's number for a stream that can not store one message more: per lane, or in bytes. */
const queueFull = 10077;

interface PublishAck {
  readonly seq?: number;
  readonly error?: { readonly err_code?: number; readonly description: string };
}

const unavailable = (message: string): NatsQueueError => new NatsQueueError("UNAVAILABLE", `${message} Try again.`);

const timedOut = (name: string, timeoutMs: number): BatcherError =>
  new BatcherError(
    "TIMEOUT",
    `${name}: no result within ${timeoutMs} ms (timeoutMs). Raise timeoutMs, or add workers.`,
    { timeoutMs, waiting: true },
  );
