import { BatcherError } from "../../core/errors.ts";
import type { CallOptions } from "../../core/options.ts";
import type { BatchRecord } from "../../policies/policy.ts";
import { Ages } from "./ages.ts";
import { Caution } from "./caution.ts";
import type { NatsMessage, NatsSubscription } from "./client.ts";
import { DeadLetters } from "./dead-letters.ts";
import { deliveryOf, Verdict, type AckToken, type Delivery, type Request } from "./delivery.ts";
import { unpack, type RequestHead } from "./envelope.ts";
import { NatsQueueError } from "./errors.ts";
import type { BatchGate } from "./gate.ts";
import { Hand } from "./hand.ts";
import { laneFigures, type LaneFigures } from "./figures.ts";
import { Link } from "./link.ts";
import { Pulls } from "./pulls.ts";
import { QueueKeeper } from "./queue-keeper.ts";
import { lanes, queueSettings, type NatsQueueOptions, type QueueSettings } from "./queue-options.ts";
import { Replies } from "./replies.ts";
import { Suspects } from "./suspects.ts";
import { namesOf, type QueueNames } from "./topology.ts";
import { aliveEveryMs, type WorkerInfo } from "./workers-seen.ts";

export interface NatsFeedOptions extends NatsQueueOptions {
  /** Around the batcher's executor: what runs decides how much is taken. */
  readonly gate: BatchGate;
  /** Batches that run at once. */
  readonly slots: number;
  readonly maxBatchSize: number;
  /** What is served, for front ends to compare. */
  readonly serves?: string | undefined;
  /** False while it can run nothing: it then takes nothing. Default always true. */
  readonly isServing?: (() => boolean) | undefined;
}

export interface ServeOptions extends CallOptions {
  /** It may be what ended a worker: no other item may share its batch. */
  readonly isAlone: boolean;
  readonly traceparent?: string | undefined;
}

export interface ServedItem {
  readonly value: unknown;
  readonly batchId: number;
  readonly batchSize: number;
}

/** Runs one item in whatever batch it fits. */
export type Serve = (item: unknown, options: ServeOptions) => Promise<ServedItem>;

/** After a hand-over a batcher has its turn before more is asked for. */
const turnMs = 1;
const toppingUpMs = 2;

/**
 * Feeds a batcher on this machine from a queue in NATS: takes no more than its free slots can run, so that what waits,
 * waits where every worker can take it.
 */
export class NatsFeed {
  /** What happened to items here since the start. */
  readonly counts: { delivered: number; redelivered: number; expired: number; cancelled: number; handedBack: number } =
    {
      delivered: 0,
      redelivered: 0,
      expired: 0,
      cancelled: 0,
      handedBack: 0,
    };
  readonly id: string;
  readonly #options: NatsFeedOptions;
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: Link;
  readonly #replies: Replies;
  readonly #pulls: Pulls;
  readonly #suspects: Suspects;
  readonly #deadLetters: DeadLetters;
  readonly #ages: Ages = new Ages();
  readonly #hand: Hand = new Hand();
  readonly #caution: Caution;
  readonly #keeper: QueueKeeper;
  #serve: Serve | undefined;
  /** Taken, and not yet with the batcher. */
  #arrived: Delivery[] = [];
  /** With the batcher, not settled. */
  #serving = 0;
  /** Items that waited behind the last one taken. */
  #backlog = 0;
  /** More has been asked for, for the batch that is being collected. */
  #hasToppedUp = false;
  /** The queue and its consumers are there; never so without JetStream. */
  #isEnsured = false;
  #isStopping = false;
  #whenIdle: (() => void) | undefined;
  #largest: { readonly runMs: number; readonly size: number; readonly atMs: number } | undefined;
  #pushed: NatsSubscription[] = [];
  readonly #cancelTimers: Map<string, () => void> = new Map();

  constructor(options: NatsFeedOptions) {
    this.#options = options;
    const settings = (this.#settings = queueSettings(options));
    this.#names = namesOf(settings);
    this.id = crypto.randomUUID();
    this.#link = new Link(settings.connection, {
      disconnected: () => this.#pulls.forget(),
      reconnected: () => this.#reconnected(),
      closed: () => this.#pulls.forget(),
    });
    this.#caution = new Caution(settings, () => this.#link.publish(this.#names.careful));
    this.#keeper = new QueueKeeper(settings, "worker", () => this.#kept());
    this.#replies = new Replies(settings, this.#link, this.id);
    this.#pulls = new Pulls(settings, this.#names, this.#link, {
      arrived: (message, token) => this.#arrivedFromQueue(message, token),
      quiet: () => this.#advance(),
      refused: () => this.#keeper.keepSoon(),
    });
    this.#deadLetters = new DeadLetters(settings, this.#names, this.#link);
    this.#suspects = new Suspects(settings, {
      runAlone: (delivery) => this.#run(delivery, true),
      drop: (delivery) => this.#finish(delivery, Verdict.end),
      handBack: (delivery) => this.#handBack(delivery),
      idle: () => this.#advance(),
    });
  }

  get deadLetters(): number {
    return this.#deadLetters.count;
  }

  figures(): Promise<LaneFigures[]> {
    return laneFigures(this.#settings);
  }

  /** Give it every record of the batcher: replies say how long their batch took. */
  observe(record: BatchRecord): void {
    this.#replies.observe(record);
    const nowMs = this.#settings.clock.now();
    const { size, runMs } = record;
    const isOld = this.#largest !== undefined && nowMs - this.#largest.atMs > 60_000;
    if (this.#largest === undefined || isOld || size >= this.#largest.size)
      this.#largest = { runMs, size, atMs: nowMs };
  }

  /** Begins to take items. The queue is created where it is missing, now or as soon as NATS lets it. */
  start(serve: Serve): void {
    this.#serve = serve;
    let running = 0;
    this.#options.gate.changed = () => {
      const { runningBatches } = this.#options.gate;
      // A batch that starts may want the next one ahead of its end; of one that ends the callers are answered first.
      if (runningBatches > running) this.#advance();
      else this.#later("turn", 0, () => this.#advance());
      running = runningBatches;
    };
    const { durability } = this.#settings;
    this.#link.subscribe(this.#names.cancel, ({ data }) => this.#hand.cancel(new TextDecoder().decode(data)));
    this.#link.subscribe(this.#names.who, () => this.#sayAlive());
    // Whoever has just started may have been started because of a poisonous item.
    this.#caution.begin();
    if (durability === "none") {
      for (const lane of lanes)
        this.#pushed.push(
          this.#link.subscribe(this.#names.lane(lane), (message) => this.#pushedTo(message, lane), "workers"),
        );
      this.#sayAlive();
    } else {
      this.#link.subscribe(this.#names.careful, () => this.#caution.begin());
      this.#deadLetters.watch();
      this.#keeper.keep();
      this.#signalProgress();
    }
    this.#tick();
  }

  /**
   * Takes no more, and resolves when everything taken is answered or `graceMs` (default none) is over; what has not
   * been begun goes back to the queue at once. The batcher and the connection stay their owner's to close.
   */
  async drain({ graceMs = Infinity }: { readonly graceMs?: number | undefined } = {}): Promise<void> {
    this.#isStopping = true;
    this.#sayAlive();
    const { clock } = this.#settings;
    await this.#pulls.stop();
    await this.#link.parted(() => Promise.all(this.#pushed.map((subscription) => subscription.drain())), clock);
    for (const delivery of [...this.#arrived.splice(0), ...this.#suspects.stop()]) this.#handBack(delivery);
    const idle = new Promise<void>((resolve) => (this.#whenIdle = resolve));
    if (this.#serving === 0) this.#whenIdle?.();
    const cancel = graceMs === Infinity ? undefined : clock.after(graceMs, () => this.#whenIdle?.());
    await idle;
    cancel?.();
  }

  /** After the batcher is closed: sends what is left to say, and ends every subscription. */
  async leave(): Promise<void> {
    this.#keeper.stop();
    for (const cancel of this.#cancelTimers.values()) cancel();
    await this.#link.parted(() => this.#settings.connection.flush(), this.#settings.clock);
    this.#link.leave();
  }

  #kept(): void {
    // Requests sent to a consumer that was not there are lost without a word.
    this.#pulls.forget();
    this.#isEnsured = true;
    this.#sayAlive();
    this.#advance();
  }

  #reconnected(): void {
    this.#replies.sendUnsent();
    this.#isEnsured = false;
    if (this.#settings.durability !== "none") this.#keeper.keep();
  }

  /** Something changed: asks for what free slots could run, or gives the batcher what has arrived. */
  #advance(): void {
    if (!this.#isEnsured || this.#isStopping || !this.#link.isConnected) return;
    if (this.#suspects.isBusy || this.#pulls.isCollecting) return;
    if (this.#options.isServing?.() === false) {
      for (const delivery of this.#arrived.splice(0)) this.#handBack(delivery);
      return;
    }
    const { slots, maxBatchSize } = this.#options;
    const arrived = this.#arrived.length;
    const waiting = Math.max(0, this.#serving - this.#options.gate.runningItems);
    const freeSlots = slots - this.#options.gate.runningBatches;
    // Ahead, a whole batch for whoever is free next saves the way; a part of one is not sealed before a slot is free.
    const isAhead = freeSlots <= 0;
    if (isAhead && (waiting > 0 || this.#urgent() + this.#backlog < maxBatchSize)) return;
    const capacity = Math.max(1, freeSlots) * maxBatchSize - waiting;
    if (arrived === 0) {
      if (capacity > 0) this.#pulls.ask(this.#caution.isCareful ? 1 : capacity);
    } else if (!this.#hasToppedUp && this.#couldTopUp(capacity)) {
      this.#hasToppedUp = true;
      this.#pulls.ask(capacity - this.#urgent());
      // The answer comes within a round trip, or the items that are here go without it.
      this.#later("release", toppingUpMs, () => {
        if (this.#options.gate.runningBatches < slots) this.#release(capacity);
      });
    } else if (!isAhead || this.#urgent() >= capacity) {
      this.#release(capacity);
    }
  }

  /** More waits for the batch that is being collected; or bulk is here, and the lane above it has not been asked. */
  #couldTopUp(capacity: number): boolean {
    if (this.#backlog > 0 && this.#arrived.length < capacity) return true;
    const urgent = this.#urgent();
    return urgent < this.#arrived.length && urgent < capacity && !this.#pulls.isOpen("interactive");
  }

  #urgent(): number {
    return this.#arrived.reduce((count, { lane }) => count + (lane === "bulk" ? 0 : 1), 0);
  }

  /** Gives the batcher what has arrived, as much as free slots can run, the highest lane first. */
  #release(capacity: number): void {
    this.#cancelTimers.get("release")?.();
    this.#cancelTimers.delete("release");
    this.#hasToppedUp = false;
    if (this.#arrived.length > capacity) this.#arrived.sort((a, b) => lanes.indexOf(a.lane) - lanes.indexOf(b.lane));
    for (const delivery of this.#arrived.splice(0, capacity)) void this.#run(delivery, false);
    this.#later("turn", turnMs, () => this.#advance());
  }

  #arrivedFromQueue(message: NatsMessage, { lane, deliveries, sequence, storedAtMs, pending }: AckToken): void {
    this.#backlog = pending;
    const ack = message.reply!;
    let request: Request;
    try {
      request = unpack<RequestHead>(message.data);
    } catch {
      // Somebody else's message: nobody waits for it, and it would come back for ever.
      this.#link.publish(ack, Verdict.end);
      return;
    }
    const ageMs = this.#ages.ageMs(storedAtMs, Date.now());
    const nowMs = this.#settings.clock.now();
    const delivery = deliveryOf(request, nowMs, ageMs, { lane, sequence, deliveries, ack });
    this.counts.delivered++;
    const known = this.#hand.get(delivery.key);
    if (known !== undefined) {
      // It is still being worked on here: the queue had not heard of it in time.
      known.ack = ack;
      known.deliveries = deliveries;
      return;
    }
    if (this.#hand.wasCancelled(delivery.key)) return void this.#link.publish(ack, Verdict.end);
    if (this.#isStopping || this.#options.isServing?.() === false) return this.#handBack(delivery);
    this.#hand.add(delivery);
    if (deliveries > 1) {
      this.counts.redelivered++;
      this.#caution.suspectSeen();
      this.#suspects.add(delivery);
    } else {
      this.#arrived.push(delivery);
    }
  }

  /** Core NATS: a worker gets what is pushed to it, and refuses what it has no room for. */
  #pushedTo({ data }: NatsMessage, lane: Delivery["lane"]): void {
    const request = unpack<RequestHead>(data);
    const nowMs = this.#settings.clock.now();
    const delivery = deliveryOf(request, nowMs, 0, { lane, sequence: "", deliveries: 1, ack: undefined });
    this.counts.delivered++;
    const { maxQueueSize } = this.#settings;
    if (this.#serving - this.#options.gate.runningItems >= maxQueueSize) {
      const message = `The worker's queue is full: ${maxQueueSize} items wait (maxQueueSize).`;
      return this.#replies.error(delivery, new BatcherError("QUEUE_FULL", message, { maxQueueSize }));
    }
    this.#hand.add(delivery);
    void this.#run(delivery, false);
  }

  async #run(delivery: Delivery, isAlone: boolean): Promise<void> {
    const { head, body, lane, abort, deadlineAtMs } = delivery;
    const timeoutMs = deadlineAtMs - this.#settings.clock.now();
    if (timeoutMs <= 0) return this.#expired(delivery);
    this.#serving++;
    try {
      const item = this.#settings.codec.decode(body);
      const options = { signal: abort.signal, timeoutMs, priority: lane, isAlone, traceparent: head.t };
      const { value, ...batch } = await this.#serve!(item, options);
      this.#replies.result(delivery, value, batch);
      this.#hand.remove(delivery.key);
    } catch (error) {
      this.#failed(delivery, error);
    } finally {
      this.#serving--;
      if (this.#serving === 0) this.#whenIdle?.();
    }
    this.#later("turn", 0, () => this.#advance());
  }

  #expired(delivery: Delivery): void {
    this.counts.expired++;
    const message = `The item waited longer than its ${delivery.head.d} ms and was not run.`;
    this.#replies.error(delivery, new BatcherError("TIMEOUT", message, { timeoutMs: delivery.head.d }));
    this.#finish(delivery, Verdict.end);
  }

  #failed(delivery: Delivery, error: unknown): void {
    if (delivery.isCancelled) {
      this.counts.cancelled++;
      return this.#finish(delivery, Verdict.end);
    }
    const code = error instanceof BatcherError ? error.code : undefined;
    // This worker's own trouble: another one can still serve the caller.
    if (code === "CLOSED" || code === "QUEUE_FULL") return this.#handBack(delivery, error);
    if (code === "WORKER_CRASHED" && delivery.ack !== undefined)
      return this.#crashed(delivery, (error as BatcherError).details, error as Error);
    this.#replies.error(delivery, error);
    this.#hand.remove(delivery.key);
  }

  /** An item on which the model crashes, alone, is given up at once: another try would only crash another worker. */
  #crashed(delivery: Delivery, { items }: Readonly<Record<string, unknown>>, error: Error): void {
    if (items !== 1) return this.#handBack(delivery, error, 1000);
    const { head, body, sequence, deliveries } = delivery;
    this.#deadLetters.bury({ head, body, sequence, deliveries, reason: error.message });
    this.#finish(delivery, Verdict.end);
  }

  #handBack(delivery: Delivery, error?: unknown, delayMs: number = 0): void {
    this.counts.handedBack++;
    if (delivery.ack === undefined) {
      const message = error instanceof Error ? error.message : "The worker is shutting down.";
      this.#replies.error(delivery, new NatsQueueError("UNAVAILABLE", message));
    }
    this.#finish(delivery, delayMs === 0 ? Verdict.again : Verdict.againAfter(delayMs));
  }

  #finish(delivery: Delivery, verdict: string): void {
    this.#hand.remove(delivery.key);
    if (delivery.ack !== undefined) this.#link.publish(delivery.ack, verdict);
  }

  /** Says of everything here that it is being worked on. Not from the model's thread: a hung process says nothing. */
  #signalProgress(): void {
    const { clock, ackWaitMs } = this.#settings;
    for (const { ack } of this.#hand.silent(clock.now(), ackWaitMs / 3))
      if (ack !== undefined) this.#link.publish(ack, Verdict.working);
    this.#later("progress", ackWaitMs / 6, () => this.#signalProgress());
  }

  #tick(): void {
    this.#sayAlive();
    this.#advance();
    this.#later("tick", aliveEveryMs, () => this.#tick());
  }

  #sayAlive(): void {
    const { slots, maxBatchSize, serves, isServing } = this.#options;
    const info: WorkerInfo = {
      id: this.id,
      slots,
      maxBatchSize,
      isServing: !this.#isStopping && (isServing?.() ?? true),
      runMs: this.#largest?.runMs ?? 0,
      runSize: this.#largest?.size ?? 0,
      serves,
    };
    this.#link.publish(this.#names.alive, JSON.stringify(info));
  }

  /** One timer per purpose: a second one before the first has fired is the same. */
  #later(purpose: string, delayMs: number, callback: () => void): void {
    if (this.#cancelTimers.has(purpose)) return;
    const cancel = this.#settings.clock.after(delayMs, () => {
      this.#cancelTimers.delete(purpose);
      callback();
    });
    this.#cancelTimers.set(purpose, cancel);
  }
}

declare const crypto: { randomUUID(): string };
