import type { BatchRecord } from "../../policies/policy.ts";
import { Arrivals } from "./arrivals.ts";
import { Caution } from "./caution.ts";
import type { NatsSubscription } from "./client.ts";
import { DeadLetters } from "./dead-letters.ts";
import { Verdict } from "./delivery.ts";
import { laneFigures, type LaneFigures } from "./figures.ts";
import type { BatchGate } from "./gate.ts";
import { Hand } from "./hand.ts";
import { Intake } from "./intake.ts";
import { Link } from "./link.ts";
import { Presence } from "./presence.ts";
import { Pulls } from "./pulls.ts";
import { QueueKeeper } from "./queue-keeper.ts";
import { lanes, queueSettings, type NatsQueueOptions, type QueueSettings } from "./queue-options.ts";
import { Replies } from "./replies.ts";
import { Runs, type Serve } from "./runs.ts";
import { Suspects } from "./suspects.ts";
import { Timers } from "./timers.ts";
import { namesOf, type QueueNames } from "./topology.ts";
import { aliveEveryMs, type WorkerInfo } from "./workers-seen.ts";

/** What happened to items at a worker. */
export interface FeedCounts {
  readonly delivered: number;
  readonly redelivered: number;
  readonly expired: number;
  readonly cancelled: number;
  readonly handedBack: number;
}

export interface NatsFeedOptions extends NatsQueueOptions {
  /** Around the batcher's executor: what runs decides how much is taken. */
  readonly gate: BatchGate;
  /** Batches that run at once. */
  readonly slots: number;
  readonly maxBatchSize: number;
  /** False while it can run nothing: it then takes nothing. Default always true. */
  readonly isServing?: (() => boolean) | undefined;
}

/**
 * Feeds a batcher on this machine from a queue in NATS: takes no more than its free slots can run, so that what waits,
 * waits where every worker can take it.
 */
export class NatsFeed {
  readonly id: string;
  readonly #options: NatsFeedOptions;
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: Link;
  readonly #replies: Replies;
  readonly #pulls: Pulls;
  readonly #suspects: Suspects;
  readonly #deadLetters: DeadLetters;
  readonly #hand: Hand = new Hand();
  readonly #caution: Caution;
  readonly #keeper: QueueKeeper;
  readonly #presence: Presence;
  readonly #timers: Timers;
  readonly #intake: Intake;
  readonly #runs: Runs;
  readonly #arrivals: Arrivals;
  /** The queue and its consumers are there; never so without JetStream. */
  #isEnsured = false;
  #isStopping = false;
  /** Core NATS: where items are pushed to. */
  readonly #pushed: NatsSubscription[] = [];

  constructor(options: NatsFeedOptions) {
    this.#options = options;
    const settings = (this.#settings = queueSettings(options));
    const names = (this.#names = namesOf(settings));
    this.id = crypto.randomUUID();
    const link = (this.#link = new Link(settings.connection, {
      disconnected: () => this.#pulls.forget(),
      reconnected: () => this.#reconnected(),
      closed: () => this.#pulls.forget(),
    }));
    this.#timers = new Timers(settings.clock);
    this.#caution = new Caution(settings, () => link.publish(names.careful));
    this.#keeper = new QueueKeeper(settings, "worker", () => this.#kept());
    this.#replies = new Replies(settings, link, this.id);
    this.#presence = new Presence(settings, names, link, () => this.#about());
    this.#deadLetters = new DeadLetters(settings, names, link);
    this.#runs = new Runs({
      settings,
      link,
      hand: this.#hand,
      replies: this.#replies,
      deadLetters: this.#deadLetters,
      ended: () => this.#advanceSoon(),
    });
    this.#pulls = new Pulls(settings, names, link, {
      arrived: (message, token) => this.#arrivals.fromQueue(message, token),
      quiet: () => this.#intake.advance(),
      refused: () => this.#keeper.keepSoon(),
    });
    this.#suspects = new Suspects(settings, {
      runAlone: (delivery) => this.#runs.run(delivery, "alone"),
      drop: (delivery) => this.#runs.drop(delivery),
      handBack: (delivery) => this.#runs.handBack(delivery),
      idle: () => this.#intake.advance(),
    });
    const { gate, slots, maxBatchSize } = options;
    this.#intake = new Intake({
      gate,
      slots,
      maxBatchSize,
      caution: this.#caution,
      timers: this.#timers,
      pulls: this.#pulls,
      serving: () => this.#runs.serving,
      state: () => this.#state(),
      run: (delivery) => void this.#runs.run(delivery, "shared"),
      handBack: (delivery) => this.#runs.handBack(delivery),
    });
    this.#arrivals = new Arrivals({
      settings,
      link,
      gate,
      hand: this.#hand,
      caution: this.#caution,
      suspects: this.#suspects,
      intake: this.#intake,
      runs: this.#runs,
      replies: this.#replies,
      isTaking: () => !this.#isStopping && this.#isServing,
    });
  }

  /** What happened to items here since the start. */
  get counts(): FeedCounts {
    return { ...this.#arrivals.counts, ...this.#runs.counts };
  }

  /** Why it gets no items; undefined where it does. */
  get trouble(): string | undefined {
    if (!this.#link.isConnected) return "the connection to NATS is down";
    return this.#link.refusal ?? this.#keeper.trouble;
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
    this.#presence.observe(record);
  }

  /** Begins to take items. The queue is created where it is missing, now or as soon as NATS lets it. */
  start(serve: Serve): void {
    this.#runs.begin(serve);
    let running = 0;
    this.#options.gate.changed = () => {
      const { runningBatches } = this.#options.gate;
      // A batch that starts may want the next one ahead of its end; of one that ends the callers are answered first.
      if (runningBatches > running) this.#intake.advance();
      else this.#advanceSoon();
      running = runningBatches;
    };
    this.#link.subscribe(this.#names.cancel, ({ data }) => this.#hand.cancel(data), { need: "optional" });
    this.#link.subscribe(this.#names.who, () => this.#presence.asked(), { need: "optional" });
    // Whoever has just started may have been started because of a poisonous item.
    this.#caution.begin();
    if (this.#settings.durability === "none") {
      for (const lane of lanes)
        this.#pushed.push(
          this.#link.subscribe(this.#names.lane(lane), (message) => this.#arrivals.pushed(message, lane), {
            queue: "workers",
          }),
        );
      this.#keeper.keep();
    } else {
      this.#link.subscribe(this.#names.careful, () => this.#caution.begin(), { need: "optional" });
      this.#deadLetters.watch();
      this.#keeper.watch(this.#link, () => this.#pulls.forget());
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
    this.#presence.sayAlive();
    await this.#pulls.stop();
    const { clock } = this.#settings;
    await this.#link.parted(() => Promise.all(this.#pushed.map((subscription) => subscription.drain())), clock);
    for (const delivery of [...this.#intake.empty(), ...this.#suspects.stop()]) this.#runs.handBack(delivery);
    await this.#runs.idle(graceMs);
  }

  /** After the batcher is closed: sends what is left to say, and ends every subscription. */
  async leave(): Promise<void> {
    this.#keeper.stop();
    this.#timers.cancelAll();
    this.#presence.leave();
    await this.#link.parted(() => this.#settings.connection.flush(), this.#settings.clock);
    this.#link.leave();
  }

  #kept(): void {
    if (this.#settings.durability === "none") return this.#presence.sayAlive();
    // Requests sent to a consumer that was not there are lost without a word.
    this.#pulls.forget();
    this.#isEnsured = true;
    this.#presence.sayAlive();
    this.#intake.advance();
  }

  #reconnected(): void {
    this.#replies.sendUnsent();
    this.#isEnsured = false;
    if (this.#settings.durability !== "none") this.#keeper.keep();
  }

  #state(): "taking" | "waiting" | "handing back" {
    if (!this.#isEnsured || this.#isStopping || !this.#link.isConnected || this.#suspects.isBusy) return "waiting";
    return this.#isServing ? "taking" : "handing back";
  }

  get #isServing(): boolean {
    return this.#options.isServing?.() ?? true;
  }

  #advanceSoon(): void {
    this.#timers.after("turn", 0, () => this.#intake.advance());
  }

  /** Says of everything here that it is being worked on. Not from the model's thread: a hung process says nothing. */
  #signalProgress(): void {
    const { clock, ackWaitMs } = this.#settings;
    for (const { ack } of this.#hand.silent(clock.now(), ackWaitMs / 3))
      if (ack !== undefined) this.#link.publish(ack, Verdict.working);
    this.#timers.after("progress", ackWaitMs / 6, () => this.#signalProgress());
  }

  #tick(): void {
    this.#presence.sayAlive();
    this.#intake.advance();
    this.#timers.after("tick", aliveEveryMs, () => this.#tick());
  }

  #about(): Omit<WorkerInfo, "runMs" | "runSize"> {
    const { slots, maxBatchSize } = this.#options;
    const { serves } = this.#settings;
    const takesItems = this.#keeper.wasKept && this.#link.refusal === undefined;
    const isServing = takesItems && !this.#isStopping && this.#isServing;
    return { id: this.id, slots, maxBatchSize, isServing, serves };
  }
}

declare const crypto: { randomUUID(): string };
