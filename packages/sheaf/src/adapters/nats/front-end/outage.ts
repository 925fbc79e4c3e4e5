import type { QueueSettings } from "../queue/options.ts";
import { unavailable } from "../wire/errors.ts";
import type { Call } from "./call.ts";

/** As many calls may wait for NATS to take them, and as many bytes of theirs. */
const maxHeld = 10_000;
const maxHeldBytes = 64 * 2 ** 20;

export interface OutageEvents {
  /** The queue is there again: it can be published. */
  release(call: Call): void;
  /** It takes too long. Nobody has sent the call anywhere, and it can be tried elsewhere. */
  refuse(call: Call, error: Error): void;
}

/**
 * A NATS server that restarts is away for some hundred milliseconds. Calls that come meanwhile are held for a short time,
 * and published when the queue is there again; calls that were on their way are not, for nobody knows whether they
 * arrived.
 */
export class Outage {
  readonly #settings: QueueSettings;
  readonly #holdMs: number;
  readonly #name: string;
  readonly #events: OutageEvents;
  #state: "none" | "short" | "long" = "none";
  #held: Call[] = [];
  #heldBytes = 0;
  #isConnected = true;
  #cancelTimer: (() => void) | undefined;

  constructor(settings: QueueSettings, { holdMs, name }: { holdMs: number; name: string }, events: OutageEvents) {
    this.#settings = settings;
    this.#holdMs = holdMs;
    this.#name = name;
    this.#events = events;
  }

  /** Calls are held and not refused. */
  get isShort(): boolean {
    return this.#state === "short";
  }

  /** The connection is down. */
  begin(): void {
    this.#isConnected = false;
    if (this.#state !== "none") return;
    this.#state = this.#holdMs > 0 ? "short" : "long";
    if (this.#holdMs > 0) this.#cancelTimer = this.#settings.clock.after(this.#holdMs, () => this.#isOver());
  }

  /** The connection is back. The queue is looked for; calls that are held wait for it, as long as they would have waited. */
  reconnected(): void {
    this.#isConnected = true;
    if (this.#state === "long") this.end();
  }

  /** The queue is there again. */
  end(): void {
    this.#state = "none";
    this.#cancelTimer?.();
    for (const call of this.#empty()) this.#events.release(call);
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  /** @throws {NatsQueueError} `UNAVAILABLE` where a call would not be held. */
  check(): void {
    if (this.#state === "long") throw this.#down();
    const isFull = this.#held.length >= maxHeld || this.#heldBytes >= maxHeldBytes;
    if (isFull) throw this.#down();
  }

  /** False where it can be published at once. */
  hold(call: Call): boolean {
    if (this.#state === "none") return false;
    this.#held.push(call);
    this.#heldBytes += call.payload.byteLength;
    return true;
  }

  #isOver(): void {
    if (this.#isConnected) return this.end();
    this.#state = "long";
    for (const call of this.#empty()) this.#events.refuse(call, this.#down());
  }

  #empty(): Call[] {
    this.#heldBytes = 0;
    return this.#held.splice(0);
  }

  #down(): Error {
    return unavailable(`${this.#name}: the connection to NATS is down.`);
  }
}
