import type { Delivery } from "./delivery.ts";
import { questionSubject } from "../wire/envelope.ts";
import type { QueueSettings } from "../queue/options.ts";

export interface RedeliveryEvents {
  /** Runs it alone; resolves when it is answered. */
  runAlone(delivery: Delivery): Promise<void>;
  /** Its caller has left. */
  drop(delivery: Delivery): void;
  /** Too many wait for their front ends: another worker may have it. */
  handBack(delivery: Delivery): void;
  /** No suspect is running. */
  idle(): void;
}

const questionTimeoutMs = 1000;
const askAgainMs = 500;
/** A front end that is silent for this many ack waits will not come back: its callers have gone with it. */
const frontEndGoneWaits = 2;
const maxParked = 1000;

/**
 * Items that were delivered before. A worker ended, or hung, while it had them: one of
 * them may be the cause. So they run alone, one after the other, in random order (if the guilty one hurts another, it
 * is not always the same), and only those whose callers still wait.
 */
export class Redeliveries {
  readonly #settings: QueueSettings;
  /** Front ends remember where an item runs alone: with it they find the one that ends workers. */
  readonly #workerId: string;
  readonly #events: RedeliveryEvents;
  readonly #waiting: Delivery[] = [];
  /** Items whose front end does not answer, with the moment they are dropped. */
  readonly #parked: Set<Delivery> = new Set();
  #isWorking = false;
  #isStopped = false;

  constructor(settings: QueueSettings, workerId: string, events: RedeliveryEvents) {
    this.#settings = settings;
    this.#workerId = workerId;
    this.#events = events;
  }

  get isBusy(): boolean {
    return this.#isWorking;
  }

  add(delivery: Delivery): void {
    this.#waiting.splice(Math.floor(Math.random() * (this.#waiting.length + 1)), 0, delivery);
    if (!this.#isWorking) void this.#work();
  }

  /** Stops; @returns the items that it has not begun. */
  stop(): Delivery[] {
    this.#isStopped = true;
    return [...this.#waiting.splice(0), ...this.#parked];
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const isAwaited = next.isCancelled ? false : await this.#isAwaited(next);
      if (this.#isStopped) this.#events.handBack(next);
      else if (isAwaited === undefined) this.#park(next);
      else if (isAwaited) await this.#events.runAlone(next);
      else this.#events.drop(next);
    }
    this.#isWorking = false;
    if (!this.#isStopped) this.#events.idle();
  }

  /** Whether its caller still waits; undefined where the front end cannot be asked now. */
  async #isAwaited({ head }: Delivery): Promise<boolean | undefined> {
    const timeout = questionTimeoutMs;
    try {
      const { data } = await this.#settings.connection.request(questionSubject(head), this.#workerId, { timeout });
      return data[0] === "1".codePointAt(0);
    } catch {
      return undefined;
    }
  }

  #park(delivery: Delivery): void {
    if (this.#parked.size >= maxParked) return this.#events.handBack(delivery);
    const { clock, ackWaitMs } = this.#settings;
    const untilMs = clock.now() + frontEndGoneWaits * ackWaitMs;
    this.#parked.add(delivery);
    const askAgain = (): void => {
      if (this.#isStopped) return;
      void this.#isAwaited(delivery).then((isAwaited) => {
        if (this.#isStopped) return;
        const isGone = clock.now() >= Math.min(untilMs, delivery.deadlineAtMs);
        if (isAwaited === undefined && !isGone && !delivery.isCancelled) return void clock.after(askAgainMs, askAgain);
        this.#parked.delete(delivery);
        if (isAwaited === true) this.add(delivery);
        else this.#events.drop(delivery);
      });
    };
    clock.after(askAgainMs, askAgain);
  }
}
