import { type Clock, within } from "../../../core/runtime/runtime.ts";
import type { NatsConnection, NatsMessage, NatsSubscription } from "./client.ts";
import { every } from "./every.ts";

/** Events of a connection, for one side of a queue. */
export interface ConnectionEvents {
  disconnected(): void;
  reconnected(): void;
  closed(): void;
}

/** The settings of a queue that its connection uses. */
interface ConnectionSettings {
  readonly connection: NatsConnection;
  readonly warn: (message: string, cause?: unknown) => void;
  readonly clock: Clock;
}

/** A server that hangs must not keep a process alive. */
const partingMs = 2000;

const askEveryMs = 1000;
/** NATS counts as silent when a ping has had no answer for this long. */
const silentMs = 1000;
/** A ping without an answer for this long means that the server hangs, and front ends refuse calls. */
const hangMs = 400;
/** Within this time a server that hung has handled what was sent to it meanwhile. */
const caughtUpMs = 2000;

/** A connection, and whether it is up. */
export class QueueConnection {
  isConnected: boolean;
  /** A subscription that NATS refuses and that this side needs. */
  refusal: string | undefined;
  readonly #connection: NatsConnection;
  readonly #warn: ConnectionSettings["warn"];
  readonly #subscriptions: NatsSubscription[] = [];
  readonly #clock: Clock;
  #isLeft = false;
  #askedAtMs: number | undefined;
  #hungUntilMs = -Infinity;
  readonly #stopAsking: () => void;
  #hasReported = false;

  constructor({ connection, warn, clock }: ConnectionSettings, events: ConnectionEvents) {
    this.#connection = connection;
    this.#clock = clock;
    this.#warn = warn;
    this.isConnected = !connection.isClosed() && connection.info !== undefined;
    void this.#watch(events);
    this.#stopAsking = every(clock, askEveryMs, () => this.#ask());
  }

  /** Why it cannot be used although it is connected. */
  get unavailableReason(): string | undefined {
    return this.refusal ?? (this.#unansweredMs > silentMs ? "NATS does not answer" : undefined);
  }

  /** NATS hung until a moment ago, or still does: what comes now may have been published long before. */
  get hasHungLately(): boolean {
    return this.#unansweredMs > hangMs || this.#clock.now() - this.#hungUntilMs < caughtUpMs;
  }

  get #unansweredMs(): number {
    return this.#askedAtMs === undefined ? 0 : this.#clock.now() - this.#askedAtMs;
  }

  /** False where it is down: a message published then may or may not be sent later, so none is. */
  publish(...[subject, payload, options]: Parameters<NatsConnection["publish"]>): boolean {
    if (!this.isConnected || this.#connection.isClosed()) return false;
    try {
      this.#connection.publish(subject, payload, options);
    } catch (thrown) {
      // Its owner is closing it.
      if (thrown instanceof Error && /^(Draining|Closed)Connection/.test(thrown.name)) return false;
      throw thrown;
    }
    return true;
  }

  /** `need`: what to do without it; for an optional one there is only a warning that NATS refuses it. */
  subscribe(
    subject: string,
    on: (message: NatsMessage) => void,
    { queue, need = "essential" }: { readonly queue?: string; readonly need?: "essential" | "optional" } = {},
  ): NatsSubscription {
    const callback = (error: Error | null, message: NatsMessage): void => {
      if (error !== null) return this.#refused(subject, error, need);
      try {
        on(message);
      } catch (thrown) {
        // Thrown on, it would end the client's reading of the socket for good.
        this.reportUnreadable(subject, thrown);
      }
    };
    const subscription = this.#connection.subscribe(subject, queue === undefined ? { callback } : { callback, queue });
    this.#subscriptions.push(subscription);
    return subscription;
  }

  /** Warns once: there may be thousands of them. */
  reportUnreadable(subject: string, thrown: unknown): void {
    if (!this.#hasReported)
      this.#warn(`sheaf: a message on ${subject} cannot be read; further ones are not reported.`, thrown);
    this.#hasReported = true;
  }

  /** Waits until the server has confirmed an end, such as a drain, for a bounded time; never rejects. */
  async part(end: () => Promise<unknown>): Promise<void> {
    if (this.isConnected) await within(end(), partingMs, this.#clock);
  }

  /** Ends every subscription of this side; the owner closes the connection. */
  close(): void {
    this.#isLeft = true;
    this.#stopAsking();
    if (this.#connection.isClosed()) return;
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  /** The client has ended the subscription, and does not try again. */
  #refused(subject: string, { message }: Error, need: "essential" | "optional"): void {
    if (this.#isLeft || this.#connection.isClosed()) return;
    const refusal = `NATS refused the subscription to ${subject} (${message}). Allow it and restart this process.`;
    if (need === "essential") this.refusal ??= refusal;
    this.#warn(`sheaf: ${refusal}`);
  }

  async #watch(events: ConnectionEvents): Promise<void> {
    for await (const { type } of this.#connection.status()) {
      if (this.#isLeft) return;
      if (type === "disconnect" && this.isConnected) {
        this.isConnected = false;
        events.disconnected();
      } else if (type === "reconnect") {
        this.isConnected = true;
        events.reconnected();
      }
    }
    this.#stopAsking();
    if (this.#isLeft) return;
    this.isConnected = false;
    events.closed();
  }

  /** A server that hangs keeps its connections: only one that answers is there. */
  #ask(): void {
    if (!this.isConnected || this.#askedAtMs !== undefined || this.#connection.isClosed()) return;
    this.#askedAtMs = this.#clock.now();
    const answered = (): void => {
      if (this.#unansweredMs > hangMs) this.#hungUntilMs = this.#clock.now();
      this.#askedAtMs = undefined;
    };
    this.#connection.flush().then(answered, answered);
  }
}
