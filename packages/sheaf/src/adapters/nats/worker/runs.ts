import type { Batcher } from "../../../core/contract/batcher.ts";
import { BatcherError } from "../../../core/contract/errors.ts";
import type { AbortSignalLike } from "../../../core/runtime/signals.ts";
import type { DeadLetters } from "../queue/dead-letters.ts";
import { AckKind, type Delivery } from "./delivery.ts";
import { handBackSubject } from "../wire/envelope.ts";
import { NatsQueueError } from "../wire/errors.ts";
import type { InFlight } from "./in-flight.ts";
import type { QueueConnection } from "../wire/connection.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { Replies } from "./replies.ts";

/** Runs the items: any batcher. */
export type ItemBatcher = Pick<Batcher<unknown, unknown>, "detailed">;

export interface RunParts {
  readonly batcher: ItemBatcher;
  readonly settings: QueueSettings;
  readonly link: QueueConnection;
  readonly inFlight: InFlight;
  readonly replies: Replies;
  readonly deadLetters: DeadLetters;
  /** An item has its outcome, so there may be room for another. */
  readonly ended: () => void;
  /** The batcher takes no more. */
  readonly closed: () => void;
}

/** A crashed worker process takes about this long to restart. */
const afterCrashMs = 1000;

/** Runs items: from the hand-over to the batcher to the reply for the caller and the acknowledgement for the queue. */
export class ItemRuns {
  readonly counts: { expired: number; cancelled: number; handedBack: number } = {
    expired: 0,
    cancelled: 0,
    handedBack: 0,
  };
  readonly #parts: RunParts;
  /** Items with the batcher that have not settled. */
  #serving = 0;
  #whenSettled: (() => void)[] = [];
  #isGivenUp = false;

  constructor(parts: RunParts) {
    this.#parts = parts;
  }

  /** Resolves when the batcher has no items left. Items that it still has after `graceMs` go back to the queue. */
  async idle(graceMs: number): Promise<void> {
    if (this.#serving === 0) return;
    const { clock } = this.#parts.settings;
    const cancel = graceMs === Infinity ? undefined : clock.after(graceMs, () => this.#giveUp());
    await this.settled();
    cancel?.();
  }

  /** Resolves when the batcher has no items left. */
  async settled(): Promise<void> {
    if (this.#serving > 0) await new Promise<void>((resolve) => this.#whenSettled.push(resolve));
  }

  async run(delivery: Delivery, sharing: "alone" | "shared"): Promise<void> {
    const { batcher, settings, inFlight, replies, ended } = this.#parts;
    const { head, body, lane, departure, deadlineAtMs } = delivery;
    const timeoutMs = deadlineAtMs - settings.clock.now();
    if (timeoutMs <= 0) return this.#expired(delivery);
    this.#serving++;
    try {
      const item = settings.codec.decode(body);
      const alone = sharing === "alone";
      const signal = departure as AbortSignalLike as AbortSignal;
      const result = await batcher.detailed(item, { signal, timeoutMs, priority: lane, alone, tag: head.t });
      replies.result(delivery, result);
      inFlight.remove(delivery.key);
    } catch (error) {
      this.#failed(delivery, error);
    } finally {
      this.#serving--;
      if (this.#serving === 0) for (const settled of this.#whenSettled.splice(0)) settled();
    }
    ended();
  }

  /**
   * Returns it untried, for any worker. Its front end is told: the queue only counts deliveries, by which the next worker
   * would take it for an item that may have ended this one.
   */
  handBack(delivery: Delivery): void {
    const { head, deliveries, ack } = delivery;
    if (ack !== undefined) this.#parts.link.publish(handBackSubject(head), String(deliveries));
    this.#giveBack(delivery);
  }

  /** Returns it, which may have run here. Without JetStream that is impossible, and its caller gets an error. */
  #giveBack(delivery: Delivery, error?: unknown, delayMs: number = 0): void {
    this.counts.handedBack++;
    if (delivery.ack === undefined) {
      const message = error instanceof Error ? error.message : "The worker is shutting down.";
      this.#parts.replies.error(delivery, new NatsQueueError("UNAVAILABLE", message));
    }
    this.#finish(delivery, delayMs === 0 ? AckKind.again : AckKind.againAfter(delayMs));
  }

  /** Its caller has left. */
  drop(delivery: Delivery): void {
    this.#finish(delivery, AckKind.end);
  }

  #giveUp(): void {
    this.#isGivenUp = true;
    for (const delivery of this.#parts.inFlight.all()) {
      this.#giveBack(delivery);
      delivery.departure.leave(new Error("The worker is shutting down."));
    }
  }

  #expired(delivery: Delivery): void {
    this.counts.expired++;
    const message = `The item waited longer than its ${delivery.head.d} ms and was not run.`;
    this.#parts.replies.error(delivery, new BatcherError("TIMEOUT", message, { timeoutMs: delivery.head.d }));
    this.#finish(delivery, AckKind.end);
  }

  #failed(delivery: Delivery, error: unknown): void {
    if (delivery.isCancelled) {
      this.counts.cancelled++;
      return this.#finish(delivery, AckKind.end);
    }
    // Abandoned items have been handed back.
    if (this.#isGivenUp && delivery.departure.aborted) return;
    const code = error instanceof BatcherError ? error.code : undefined;
    // No worker could still answer it in time, and its caller gets that error.
    const isLate = code === "QUEUE_FULL" && (error as BatcherError).details["expectedMs"] !== undefined;
    // A fault of this worker: another one can still serve the caller.
    if (code === "CLOSED") this.#parts.closed();
    if (code === "CLOSED" || (code === "QUEUE_FULL" && !isLate)) return this.#giveBack(delivery, error);
    if (code === "WORKER_CRASHED" && delivery.ack !== undefined)
      return this.#crashed(delivery, (error as BatcherError).details, error as Error);
    this.#parts.replies.error(delivery, error);
    this.#parts.inFlight.remove(delivery.key);
  }

  /** An item on which the model crashes, alone, is given up at once: another try would only crash another worker. */
  #crashed(delivery: Delivery, { items }: Readonly<Record<string, unknown>>, error: Error): void {
    if (items !== 1) return this.#giveBack(delivery, error, afterCrashMs);
    const { head, body, sequence, deliveries } = delivery;
    this.#parts.deadLetters.write({ head, body, sequence, deliveries, reason: error.message });
    this.#finish(delivery, AckKind.end);
  }

  #finish(delivery: Delivery, verdict: string): void {
    this.#parts.inFlight.remove(delivery.key);
    if (delivery.ack !== undefined) this.#parts.link.publish(delivery.ack, verdict);
  }
}
