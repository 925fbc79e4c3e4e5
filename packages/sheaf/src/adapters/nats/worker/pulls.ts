import type { Priority } from "../../../core/contract/options.ts";
import type { NatsMessage, NatsSubscription } from "../wire/client.ts";
import { ackTokenOf, type AckToken } from "./delivery.ts";
import type { QueueConnection } from "../wire/connection.ts";
import { lanes, newInbox, type QueueSettings } from "../queue/options.ts";
import type { QueueNames } from "../queue/topology.ts";

/** An open request of a lane: gives the waiting items, or waits for the first to come. */
interface Pull {
  readonly number: string;
  readonly asked: number;
  readonly askedAtMs: number;
  got: number;
  lastAtMs: number;
  cancelTimer: () => void;
}

export interface PullEvents {
  arrived(message: NatsMessage, token: AckToken): void;
  /** No request has more on its way, so the items that have arrived can go. `isEmpty`: none arrived. */
  quiet(): void;
  /** The server has no such queue, takes no more requests, or does not answer. */
  refused(): void;
}

/** How long the server keeps an idle request; a worker whose request was lost gets nothing for that long. */
const expiresMs = 5000;
/**
 * A server says when it has no more, unless it stops to lead the queue meanwhile: after this long without another item the worker
 * stops waiting, and later items go with the next batch.
 */
const quietMs = 3;
/** A server that has something gives it within this time. */
const answerMs = 20;
const nanosPerMs = 1_000_000;

/** Raw requests to the lanes' consumers: the official client has no `no_wait`, and its `fetch` costs three times the CPU. */
export class Pulls {
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: QueueConnection;
  readonly #events: PullEvents;
  readonly #route: string;
  readonly #inbox: string;
  readonly #subscription: NatsSubscription;
  readonly #open: Map<Priority, Pull> = new Map();
  #next = 0;

  constructor(settings: QueueSettings, names: QueueNames, route: string, link: QueueConnection, events: PullEvents) {
    this.#settings = settings;
    this.#route = route;
    this.#names = names;
    this.#link = link;
    this.#events = events;
    this.#inbox = newInbox(settings);
    this.#subscription = link.subscribe(`${this.#inbox}.*`, (message) => this.#received(message));
  }

  /** Some items are here and more are on their way. */
  get isCollecting(): boolean {
    for (const { got } of this.#open.values()) if (got > 0) return true;
    return false;
  }

  /** The lane is empty: whatever arrives is sent here. */
  isOpen(lane: Priority): boolean {
    return this.#open.has(lane);
  }

  /** Every lane was asked a while ago, and had nothing. */
  get areAllEmpty(): boolean {
    const cutoffAtMs = this.#settings.clock.now() - answerMs;
    return lanes.every((lane) => (this.#open.get(lane)?.askedAtMs ?? Infinity) <= cutoffAtMs);
  }

  /** Requests up to `live` or `bulk` items from every lane without an open request, highest first. */
  ask(live: number, bulk: number): void {
    for (const lane of lanes) {
      const items = lane === "bulk" ? bulk : live;
      if (items > 0 && !this.#open.has(lane)) this.#ask(lane, items);
    }
  }

  /** The connection was cut: the server has forgotten every request. */
  forget(): void {
    for (const pull of this.#open.values()) pull.cancelTimer();
    this.#open.clear();
  }

  /** Takes no more; resolves when the messages that the server had sent have arrived. */
  async stop(): Promise<void> {
    this.forget();
    await this.#link.part(() => this.#subscription.drain());
  }

  #ask(lane: Priority, items: number): void {
    const { stream, consumer } = this.#names;
    const request = JSON.stringify({ batch: items, no_wait: true, expires: expiresMs * nanosPerMs });
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer(this.#route, lane)}`;
    const number = (this.#next++).toString(36);
    if (!this.#link.publish(subject, request, { reply: `${this.#inbox}.${lane}-${number}` })) return;
    const askedAtMs = this.#settings.clock.now();
    const pull: Pull = { number, asked: items, askedAtMs, got: 0, lastAtMs: 0, cancelTimer: () => undefined };
    // A timer here ends a request too: the server's message that it has ended may be lost, or was never sent.
    pull.cancelTimer = this.#settings.clock.after(expiresMs + 500, () => {
      this.#done(lane, pull);
      this.#events.refused();
    });
    this.#open.set(lane, pull);
  }

  #received(message: NatsMessage): void {
    const { reply } = message;
    if (reply === undefined || !reply.startsWith("$JS.ACK.")) return this.#ended(message);
    const token = ackTokenOf(reply);
    this.#events.arrived(message, token);
    const pull = this.#open.get(token.lane);
    // Undefined where the timer here has ended it.
    if (pull === undefined) return this.#events.quiet();
    pull.got++;
    if (pull.got >= pull.asked || token.pending === 0) return this.#done(token.lane, pull);
    pull.lastAtMs = this.#settings.clock.now();
    if (pull.got === 1) this.#watchQuiet(token.lane, pull);
  }

  /**
   * The server's status of a request: it has expired, or was refused. Items carry their own subject, this the inbox.
   */
  #ended({ subject, headers }: NatsMessage): void {
    const [lane, number] = subject.slice(this.#inbox.length + 1).split("-") as [Priority, string];
    const pull = this.#open.get(lane);
    if (pull?.number === number) this.#done(lane, pull);
    if (headers?.code === 503 || headers?.code === 409) this.#events.refused();
  }

  #watchQuiet(lane: Priority, pull: Pull): void {
    pull.cancelTimer();
    pull.cancelTimer = this.#settings.clock.after(quietMs, () => {
      if (this.#settings.clock.now() - pull.lastAtMs >= quietMs) this.#done(lane, pull);
      else this.#watchQuiet(lane, pull);
    });
  }

  #done(lane: Priority, pull: Pull): void {
    pull.cancelTimer();
    if (this.#open.get(lane) === pull) this.#open.delete(lane);
    this.#events.quiet();
  }
}
