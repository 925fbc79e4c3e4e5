import type { Delivery } from "./delivery.ts";
import type { Peers } from "./others/peers.ts";
import type { Timers } from "./timers.ts";
import { questionSubject } from "../wire/envelope.ts";
import type { QueueSettings } from "../queue/options.ts";

export interface RedeliveryParts {
  readonly settings: QueueSettings;
  /** Front ends remember where an item runs alone: with it they find the one that ends workers. */
  readonly workerId: string;
  /** What an item may end is another process, which starts again. */
  readonly isIsolated: boolean;
  readonly route: string;
  readonly peers: Peers;
  readonly timers: Timers;
  /** It was only handed back: it runs as any other item. */
  readonly clear: (delivery: Delivery) => void;
  /** It may have ended a worker. */
  readonly suspected: () => void;
  /** Runs it alone; resolves when it is answered. */
  readonly runAlone: (delivery: Delivery) => Promise<void>;
  /** Its caller has left. */
  readonly drop: (delivery: Delivery) => void;
  /** Too many wait for their front ends: another worker may have it. */
  readonly handBack: (delivery: Delivery) => void;
  /** Resolves when nothing is running here. */
  readonly settled: () => Promise<void>;
  /** Nothing waits or runs here, nor in the queue. */
  readonly isIdle: () => boolean;
  /** `state` is another one: others should know. */
  readonly changed: () => void;
  /** No suspect is running. */
  readonly idle: () => void;
}

/** An item that was delivered before, and not only to workers that handed it back. */
interface Suspect {
  readonly delivery: Delivery;
  /** Workers that served side by side lately. */
  readonly fleet: number;
  /** Workers that ended while it ran alone. */
  readonly deaths: number;
}

interface Answer extends Omit<Suspect, "delivery"> {
  readonly isAwaited: boolean;
  /** So many deliveries, the first ones, ended with a worker that handed it back. */
  readonly handedBack: number;
}

const questionTimeoutMs = 1000;
const askAgainMs = 500;
/** A front end that is silent for this many ack waits will not come back: its callers have gone with it. */
const frontEndGoneWaits = 2;
const maxParked = 1000;
/** Within this time all others know that a worker holds suspects, and it knows of them. */
const settleMs = 150;
/** Workers send two heartbeats in this time and more: a silent one may have ended, and does not count. */
const freshMs = 1200;
/** A lone worker looks so soon whether others wait. */
const lookAgainMs = 30;

/**
 * Items that were delivered before. Those that a worker handed back run as all others; the rest are suspects. A worker ended,
 * or hung, while it had them: one of them may be the cause. So they run alone, one after the other, and only those whose
 * callers still wait: in random order (if the guilty one hurts another, it is not always the same), those that ran alone when
 * a worker ended last. At least half of the workers, and no less than one, serve the other items meanwhile. A worker that is
 * alone waits for another one if there was one lately, and otherwise until nothing else waits; but no longer than an ack wait,
 * nor half of an item's time. A worker whose batches run in a process of their own survives what ended the other one: there an item runs as all
 * others the first time, and alone from then on, without waiting.
 */
export class Redeliveries {
  readonly #parts: RedeliveryParts;
  /** By deaths. */
  readonly #waiting: Suspect[] = [];
  /** Items whose front end does not answer, with the moment they are dropped. */
  readonly #parked: Set<Delivery> = new Set();
  #state: "waiting" | "trying" | undefined;
  #beganAtMs = 0;
  #isStopped = false;

  constructor(parts: RedeliveryParts) {
    this.#parts = parts;
  }

  /** Whether it holds suspects, and whether one is running; for other workers. */
  get state(): "waiting" | "trying" | undefined {
    return this.#state;
  }

  get isBusy(): boolean {
    return this.#state === "trying";
  }

  add(delivery: Delivery): void {
    void this.#examine(delivery);
  }

  /** Tries suspects where others serve meanwhile. Call it regularly, and whenever other workers are heard. */
  look(): void {
    if (this.#isStopped || this.isBusy) return;
    for (const suspect of this.#waiting.filter(({ delivery }) => delivery.isCancelled)) {
      this.#waiting.splice(this.#waiting.indexOf(suspect), 1);
      this.#parts.drop(suspect.delivery);
    }
    const [first] = this.#waiting;
    if (first === undefined) return this.#becomes(undefined);
    this.#becomes("waiting");
    this.#parts.peers.listen();
    if (this.#mayTry(first)) void this.#try();
  }

  /** Stops; @returns the items that it has not begun. */
  stop(): Delivery[] {
    this.#isStopped = true;
    return [...this.#waiting.splice(0).map(({ delivery }) => delivery), ...this.#parked];
  }

  async #examine(delivery: Delivery): Promise<void> {
    const answer = await this.#ask(delivery, "");
    if (this.#isStopped) return this.#parts.handBack(delivery);
    if (answer === undefined) return this.#park(delivery);
    const { isAwaited, fleet, deaths, handedBack } = answer;
    if (!isAwaited) return this.#parts.drop(delivery);
    const { isIsolated, clear } = this.#parts;
    if (delivery.deliveries <= handedBack + (isIsolated ? 2 : 1)) return clear(delivery);
    if (isIsolated) return this.#runAlone(delivery);
    this.#parts.suspected();
    const from = this.#waiting.filter((other) => other.deaths < deaths).length;
    const to = this.#waiting.filter((other) => other.deaths <= deaths).length;
    const place = from + Math.floor(Math.random() * (to - from + 1));
    this.#waiting.splice(place, 0, { delivery, fleet, deaths });
    this.look();
  }

  async #try(): Promise<void> {
    const { settled, idle } = this.#parts;
    this.#becomes("trying");
    // An item that ends this worker must not take others with it.
    await settled();
    while (this.#waiting.length > 0 && this.#mayTry(this.#waiting[0]!)) {
      await this.#runAlone(this.#waiting.shift()!.delivery);
    }
    this.#becomes(this.#waiting.length > 0 ? "waiting" : undefined);
    if (!this.#isStopped) idle();
  }

  /** Its front end notes where, and counts the workers that end meanwhile. */
  async #runAlone(delivery: Delivery): Promise<void> {
    const { runAlone, drop, handBack, workerId } = this.#parts;
    const answer = await this.#ask(delivery, workerId);
    if (this.#isStopped) handBack(delivery);
    else if (answer === undefined) this.#park(delivery);
    else if (answer.isAwaited) await runAlone(delivery);
    else drop(delivery);
  }

  #mayTry({ delivery, fleet }: Suspect): boolean {
    const { settings, peers, workerId, route, isIdle } = this.#parts;
    if (this.#isStopped) return false;
    const nowMs = settings.clock.now();
    const { isBusy } = this;
    if (peers.listenedMs < settleMs || (!isBusy && nowMs - this.#beganAtMs < settleMs)) return false;
    const others = peers
      .heardWithin(freshMs)
      .filter((other) => other.id !== workerId && other.route === route && other.isServing);
    if (others.length === 0) {
      const hasWaited = nowMs - this.#beganAtMs >= settings.ackWaitMs;
      const isDue = hasWaited || nowMs >= delivery.deadlineAtMs - delivery.head.d / 2;
      return isDue || (fleet <= 1 && isIdle());
    }
    const isAhead = ({ id, suspects }: (typeof others)[number]): boolean =>
      suspects === "trying" || (suspects === "waiting" && !isBusy && id < workerId);
    return others.filter(isAhead).length < Math.max(1, Math.floor((others.length + 1) / 2));
  }

  #becomes(state: "waiting" | "trying" | undefined): void {
    const { settings, timers, changed } = this.#parts;
    if (state === "waiting") {
      const lookMs = this.#state === "trying" ? lookAgainMs : settleMs;
      timers.after("suspects", lookMs, () => this.look());
    }
    if (state === this.#state) return;
    if (this.#state === undefined) this.#beganAtMs = settings.clock.now();
    this.#state = state;
    changed();
  }

  /**
   * Whether its caller still waits; undefined where the front end cannot be asked now. `aloneAt`: the worker that is about to
   * run it alone, or empty.
   */
  async #ask({ head, isCancelled }: Delivery, aloneAt: string): Promise<Answer | undefined> {
    if (isCancelled) return { isAwaited: false, fleet: 0, deaths: 0, handedBack: 0 };
    try {
      const { connection } = this.#parts.settings;
      const { data } = await connection.request(questionSubject(head), aloneAt, { timeout: questionTimeoutMs });
      const [isAwaited, fleet, deaths, handedBack] = new TextDecoder().decode(data).split(" ").map(Number);
      return { isAwaited: isAwaited === 1, fleet: fleet || 0, deaths: deaths || 0, handedBack: handedBack || 0 };
    } catch {
      return undefined;
    }
  }

  #park(delivery: Delivery): void {
    if (this.#parked.size >= maxParked) return this.#parts.handBack(delivery);
    const { clock, ackWaitMs } = this.#parts.settings;
    const giveUpAtMs = clock.now() + frontEndGoneWaits * ackWaitMs;
    this.#parked.add(delivery);
    const askAgain = (): void => {
      if (this.#isStopped) return;
      void this.#ask(delivery, "").then((answer) => {
        if (this.#isStopped) return;
        const isGone = clock.now() >= Math.min(giveUpAtMs, delivery.deadlineAtMs);
        if (answer === undefined && !isGone && !delivery.isCancelled) return void clock.after(askAgainMs, askAgain);
        this.#parked.delete(delivery);
        if (answer?.isAwaited === true) this.add(delivery);
        else this.#parts.drop(delivery);
      });
    };
    clock.after(askAgainMs, askAgain);
  }
}
