import type { QueueSettings } from "../queue/options.ts";
import { electing } from "../queue/jetstream.ts";
import { unavailable } from "../wire/errors.ts";
import type { Fault } from "./availability.ts";
import type { Call } from "./call.ts";

/** As many calls may wait for NATS to take them, and as many bytes of theirs. */
const maxHeld = 10_000;
const maxHeldBytes = 64 * 2 ** 20;

export interface OutageEvents {
  /** The queue is there again: it can be published. */
  release(call: Call): void;
  /** It takes too long. Unless it was published before, nobody has sent the call anywhere, and it can be tried elsewhere. */
  refuse(call: Call, error: Error): void;
}

/**
 * A NATS server that restarts is away for some hundred milliseconds, and a queue in a cluster for some seconds when the server
 * that led it is lost. Calls that come meanwhile are held for a short time, and published when the queue is there again; so
 * are calls that were on their way, for the queue takes the same message only once.
 */
export class Outage {
  readonly #settings: QueueSettings;
  readonly #holdMs: number;
  readonly #name: string;
  readonly #events: OutageEvents;
  #state: "none" | "short" | "long" = "none";
  /** Of the outage: the connection is down, or no server takes items for the queue. */
  #cause: "down" | "missing" = "down";
  #held: Call[] = [];
  #heldBytes = 0;
  #isConnected = true;
  /** The last outage ended because the queue was there, not because it might be. */
  #wasFound = true;
  #cancelTimer: (() => void) | undefined;

  constructor(settings: QueueSettings, { holdMs, name }: { holdMs: number; name: string }, events: OutageEvents) {
    this.#settings = settings;
    this.#holdMs = holdMs;
    this.#name = name;
    this.#events = events;
  }

  /** Calls are taken, be it to hold them. */
  get isTaking(): boolean {
    return this.#state !== "long";
  }

  /** Why calls are refused, where they are. */
  get reason(): string | undefined {
    return this.isTaking ? undefined : this.#why();
  }

  /** That no server takes items for the queue, for as long as that is so. It may take them although it is not found. */
  get fault(): Fault | undefined {
    const isMissing = this.#state !== "none" && this.#cause === "missing";
    return isMissing ? { reason: this.#why(), isHeld: true, needsProbe: true } : undefined;
  }

  /** The connection is down. */
  begin(): void {
    this.#isConnected = false;
    this.#cause = "down";
    this.#begin(this.#holdMs);
  }

  /** Connected, but no server takes items for the queue. */
  missing(): void {
    if (this.#state !== "none" || !this.#isConnected) return;
    this.#cause = "missing";
    // Where calls were held already, they are not held for as long again.
    this.#begin(this.#wasFound ? this.#holdMs : 0);
  }

  /** The connection is back. The queue is looked for; calls that are held wait for it, as long as they would have waited. */
  reconnected(): void {
    this.#isConnected = true;
    if (this.#state === "long") this.#endUnproven();
  }

  /** The queue is there. */
  end(): void {
    this.#wasFound = true;
    this.#end();
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  /** @throws {NatsQueueError} `UNAVAILABLE` where a call would not be held. */
  check(): void {
    const isFull = this.#held.length >= maxHeld || this.#heldBytes >= maxHeldBytes;
    if (isFull || !this.isTaking) throw this.#refusal();
  }

  /** False where it can be published at once. */
  hold(call: Call): boolean {
    if (this.#state !== "short") return false;
    this.#held.push(call);
    this.#heldBytes += call.payload.byteLength;
    return true;
  }

  /** It was published, and perhaps not taken: it is held, or refused with the reason. */
  holdAgain(call: Call): void {
    if (!this.hold(call)) this.#events.refuse(call, this.#refusal());
  }

  #begin(holdMs: number): void {
    if (this.#state !== "none") return;
    this.#state = holdMs > 0 ? "short" : "long";
    if (holdMs > 0) this.#cancelTimer = this.#settings.clock.after(holdMs, () => this.#isOver());
  }

  #end(): void {
    this.#state = "none";
    this.#cancelTimer?.();
    for (const call of this.#empty()) this.#events.release(call);
  }

  /** The queue was not found yet. Whether it takes items, it says itself. */
  #endUnproven(): void {
    this.#wasFound = false;
    this.#end();
  }

  #isOver(): void {
    if (this.#isConnected && this.#cause === "down") return this.#endUnproven();
    this.#state = "long";
    for (const call of this.#empty()) this.#events.refuse(call, this.#refusal());
  }

  #empty(): Call[] {
    this.#heldBytes = 0;
    return this.#held.splice(0);
  }

  #refusal(): Error {
    return unavailable(`${this.#name}: ${this.#why()}.`);
  }

  #why(): string {
    if (this.#cause === "down") return "the connection to NATS is down";
    return this.#settings.replicas > 1 ? electing : "JetStream has no such queue yet";
  }
}
