import { connect, type Socket } from "node:net";
import { BatcherError, type CallOptions, type DetailedResult } from "sheaf";
import { askRoom, within } from "sheaf/internal";
import { binaryCodec, encodedParts } from "sheaf/internal/nats";
import type { InferOptions } from "../../http/call-options.ts";
import { Problem, retryAfter } from "../../problems/problem.ts";
import { emptyStats } from "../../shared/stats-sum.ts";
import type { FleetPart } from "../contract/fleet-part.ts";
import type { ModelBatcher } from "../models/served-model.ts";
import { errorOf } from "./errors.ts";
import { Messages, type Announced, type CallHead, type FrontFigures, type FrontHead, type HubHead, type ReplyHead, type Times } from "./wire.ts"; // prettier-ignore

const pingEveryMs = 250;
/** A hub that answers no ping for this long hangs. */
const silenceMs = 5000;
const reconnectMs = 100;
const figuresEveryMs = 1000;
/** After this time the hub is asked again whether there is room. */
const fullMs = 1000;

type Outcomes = PromiseSettledResult<DetailedResult<unknown>>[];

interface OpenCall {
  readonly options: InferOptions;
  resolve(result: DetailedResult<unknown> | Outcomes): void;
  reject(error: unknown): void;
  /** Fails each of its items. */
  cutOff(reason: Error): void;
}

/** A lane that has no room. */
interface FullLane {
  readonly refusal: Readonly<Record<string, number>>;
  readonly untilMs: number;
  /** Refused since the hub was told. */
  refused: number;
}

interface LinkOptions {
  /** The hub's socket. */
  readonly path: string;
  /** This front's number. */
  readonly front: number;
  readonly figures: () => FrontFigures;
  /** Called with each list of models, and the names that the command line has. */
  readonly onModels: (models: readonly Announced[], named: readonly string[]) => Promise<void>;
  /** Called once calls can be sent; the hub learns that the front follows the list when it resolves. */
  readonly onUp: () => Promise<unknown>;
  readonly onDown: () => void;
}

/** A front's connection to the hub. While there is none, calls fail with 503, and it connects again. */
export class HubLink implements FleetPart {
  readonly ready: Promise<void> = Promise.resolve();
  readonly #options: LinkOptions;
  readonly #calls: Map<number, OpenCall> = new Map();
  readonly #connections: WeakMap<AbortSignal, number> = new WeakMap();
  readonly #full: Map<string, FullLane> = new Map();
  readonly #timers: readonly NodeJS.Timeout[];
  #socket: Socket | undefined;
  #messages: Messages | undefined;
  #isUp = false;
  #follows: Promise<void> = Promise.resolve();
  #isClosed = false;
  /** When the ping was sent that nothing has followed. */
  #pingAtMs: number | undefined;
  #lastCall = 0;
  #lastConnection = 0;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#timers = [
      setInterval(() => this.#look(), pingEveryMs),
      setInterval(() => this.#isUp && this.#sendFigures(), figuresEveryMs),
    ];
    for (const timer of this.#timers) timer.unref();
    this.#connect();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  get unavailableReason(): string | undefined {
    return this.#isUp ? undefined : away;
  }

  /** The batcher of a model of the hub. */
  batcherOf({ name, id }: { readonly name: string; readonly id: number }, maxBatchSize: number): ModelBatcher {
    const open = new Set<number>();
    const whenNone: (() => void)[] = [];
    const ask = async <T>(items: unknown, isList: boolean, options: CallOptions | undefined): Promise<T> => {
      const { priority, caller } = options!.tag as InferOptions;
      // A tenant's refusals are counted at the hub, and a list may wait for room.
      if (caller === undefined && !isList) this.#checkRoom(id, priority === "bulk");
      const call = ++this.#lastCall;
      open.add(call);
      try {
        return (await this.#ask(call, id, items, isList, options?.tag as InferOptions)) as T;
      } finally {
        open.delete(call);
        if (open.size === 0) for (const none of whenNone.splice(0)) none();
      }
    };
    const methods: ModelBatcher = {
      name,
      capacity: { maxBatchSize, concurrency: Infinity },
      pending: { queued: 0, bulk: 0, inFlight: 0 },
      detailed: (item, options) => ask(item, false, options as CallOptions),
      settleDetailed: (items, options) => ask([...items], true, options),
      ready: async () => undefined,
      stats: () => emptyStats(name),
      subscribe: () => () => undefined,
      close: async ({ graceMs = Infinity } = {}) => {
        if (open.size === 0) return;
        await within(new Promise<void>((resolve) => whenNone.push(resolve)), graceMs);
        const reason = new BatcherError("CLOSED", `${name} is closed.`);
        for (const call of open) this.#settle(call)?.cutOff(reason);
      },
    };
    return Object.assign(methods, {
      [askRoom]: (options?: CallOptions) => this.#checkRoom(id, options?.priority === "bulk"),
    });
  }

  /** @throws {BatcherError} `QUEUE_FULL` where the hub would refuse a call. */
  #checkRoom(m: number, isBulk: boolean): void {
    const lane = this.#full.get(`${m} ${isBulk}`);
    if (lane === undefined || performance.now() > lane.untilMs) return;
    if (lane.refused++ === 0)
      setImmediate(() => {
        this.#messages?.send({ refused: { m, isBulk, count: lane.refused } } satisfies FrontHead);
        lane.refused = 0;
      });
    throw new BatcherError("QUEUE_FULL", "", lane.refusal);
  }

  /** Tells the hub that the last requests are under way. */
  drain(): void {
    this.#messages?.send({ draining: true } satisfies FrontHead);
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#socket?.destroy();
  }

  #ask(call: number, model: number, items: unknown, isList: boolean, options: InferOptions): Promise<unknown> {
    if (!this.#isUp) return Promise.reject(unreachable());
    if (options.signal!.aborted) return Promise.reject(options.signal!.reason as Error);
    const { timeoutMs, priority, signal, tag, caller } = options;
    const head: CallHead = {
      i: call,
      m: model,
      l: isList || undefined,
      d: timeoutMs,
      p: priority,
      c: this.#connectionOf(signal!),
      t: tag as string | undefined,
      k: caller?.key?.terms.name,
      u: caller?.tenant.name,
    };
    return new Promise((resolve, reject) => {
      this.#messages!.send(head, encodedParts(items));
      const cutOff = (reason: Error): void =>
        isList ? resolve((items as unknown[]).map(() => ({ status: "rejected", reason }))) : reject(reason);
      this.#calls.set(call, { options, resolve, reject, cutOff });
    });
  }

  /** The hub gives up its items once the client has gone. */
  #connectionOf(signal: AbortSignal): number {
    let number = this.#connections.get(signal);
    if (number === undefined) {
      const own = (number = ++this.#lastConnection);
      this.#connections.set(signal, own);
      signal.addEventListener("abort", () => this.#messages?.send({ closed: own }), { once: true });
    }
    return number;
  }

  #settle(call: number): OpenCall | undefined {
    const open = this.#calls.get(call);
    this.#calls.delete(call);
    return open;
  }

  #connect(): void {
    const socket = connect(this.#options.path);
    this.#socket = socket;
    const messages = new Messages(socket, (head, body) => {
      this.#pingAtMs = undefined;
      if ("i" in head) this.#replied(head as ReplyHead, body);
      else this.#told(messages, head);
    });
    socket.on("connect", () => messages.send({ hello: this.#options.front }));
    // "close" follows.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      const wasUp = this.#isUp;
      this.#messages = undefined;
      this.#pingAtMs = undefined;
      this.#isUp = false;
      const lost = [...this.#calls.values()];
      this.#calls.clear();
      this.#full.clear();
      for (const { reject } of lost) reject(unreachable());
      if (wasUp) this.#options.onDown();
      if (!this.#isClosed) setTimeout(() => this.#isClosed || this.#connect(), reconnectMs);
    });
  }

  #told(messages: Messages, { models, named = [], list, ask, full }: HubHead): void {
    if (ask) this.#sendFigures();
    if (full !== undefined) {
      const { m, isBulk, refusal } = full;
      if (refusal === undefined) this.#full.delete(`${m} ${isBulk}`);
      else this.#full.set(`${m} ${isBulk}`, { refusal, untilMs: performance.now() + fullMs, refused: 0 });
    }
    if (models === undefined) return;
    this.#messages = messages;
    // One after the other, so that the last list is the last one that the hub hears of.
    this.#follows = this.#follows.then(async () => {
      if (this.#messages !== messages) return;
      await this.#options.onModels(models, named);
      if (this.#messages !== messages) return;
      this.#isUp = true;
      await this.#options.onUp();
      messages.send({ follows: list });
    });
  }

  #replied({ i, r, o = [], e, h }: ReplyHead, body: Uint8Array): void {
    // A call that was given up has no one to tell.
    const open = this.#settle(i);
    if (open === undefined) return;
    if (h !== undefined) open.options.cacheUse?.note(...h);
    if (e !== undefined) return open.reject(errorOf(e));
    const value = binaryCodec.decode(body);
    if (r !== undefined) return open.resolve(resultOf(r, value));
    open.resolve(
      o.map((one, index) =>
        "name" in one
          ? { status: "rejected", reason: errorOf(one) }
          : { status: "fulfilled", value: resultOf(one, (value as readonly unknown[])[index]) },
      ),
    );
  }

  #sendFigures(): void {
    this.#messages?.send({ figures: this.#options.figures() });
  }

  #look(): void {
    if (!this.#isUp) return;
    const nowMs = performance.now();
    if (this.#pingAtMs === undefined) {
      this.#pingAtMs = nowMs;
      this.#messages!.send({ ping: true });
    } else if (nowMs - this.#pingAtMs >= silenceMs) {
      const socket = this.#socket;
      // After a stop of this process the answer waits to be read, which happens before this.
      setImmediate(() => this.#pingAtMs !== undefined && socket?.destroy());
    }
  }
}

const resultOf = ([queueMs, runMs, batchSize]: Times, value: unknown): DetailedResult<unknown> => ({
  value,
  queueMs,
  runMs,
  batchSize,
  batchId: 0,
});

const away = "the process that runs the models does not answer";

export const unreachable = (): Problem =>
  new Problem("NOT_READY", `The server cannot answer: ${away}.`, { headers: retryAfter(1000) });
