import { BatcherError } from "../../../core/contract/errors.ts";
import type { CallOptions } from "../../../core/contract/options.ts";
import { laneOf } from "../../../core/contract/settings.ts";
import { consumersOf, figuresOf, type LaneFigures } from "../queue/lane-figures.ts";
import type { QueueSettings } from "../queue/options.ts";
import { unlimitConsumers } from "../queue/topology.ts";
import { every } from "../wire/every.ts";
import type { Fault } from "./availability.ts";

const countEveryMs = 1000;
/** A count that has no answer for this long is a sign. */
const silentMs = 500;

export interface QueueLoadParts {
  readonly settings: QueueSettings;
  readonly name: string;
  readonly maxBatchSize: number;
  readonly refuseLate: number | undefined;
  readonly link: { readonly isConnected: boolean };
  /** How long `items` take the workers, in milliseconds; undefined until it is known. */
  readonly drainMs: (items: number) => number | undefined;
}

/** The load of a queue as the NATS server counted it a moment ago, and the refusals that follow from it. */
export class QueueLoad {
  readonly stop: () => void;
  /** Of every lane; none before the first answer, and none without JetStream. */
  lanes: readonly LaneFigures[] = [];
  #countedAtMs = 0;
  /** Of the first count in a row without an answer so far. */
  #askedAtMs: number | undefined;
  /** Why the last count failed. */
  #failure: string | undefined;
  readonly #parts: QueueLoadParts;

  constructor(parts: QueueLoadParts) {
    this.#parts = parts;
    const { durability, clock } = parts.settings;
    this.stop = durability === "none" ? () => undefined : every(clock, countEveryMs, () => void this.#count());
  }

  /** Why the queue cannot be counted, where it cannot: no server leads it, for instance. */
  get fault(): Fault | undefined {
    const waitedMs = this.#askedAtMs === undefined ? 0 : this.#parts.settings.clock.now() - this.#askedAtMs;
    const reason = this.#failure ?? (waitedMs > silentMs ? "JetStream does not answer" : undefined);
    return reason === undefined ? undefined : { reason, isHeld: true };
  }

  /** JetStream has answered a question since then. */
  hasCountedSince(atMs: number): boolean {
    return this.#countedAtMs > atMs;
  }

  /**
   * Refuses items that probably could not be answered in time, as a batcher does: judged by the items that waited a moment
   * ago, less those that have left since. Only the queue itself knows whether there is room at all.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  refuseLate(items: number, { timeoutMs, priority }: CallOptions & { readonly timeoutMs: number }): void {
    const { refuseLate, drainMs, settings } = this.#parts;
    if (refuseLate === undefined) return;
    const before = this.lanes.slice(0, laneOf(priority) + 1).reduce((sum, { pending }) => sum + pending, 0);
    const countedMs = before === 0 ? undefined : drainMs(before + items);
    if (countedMs === undefined) return;
    const expectedMs = countedMs - (settings.clock.now() - this.#countedAtMs);
    if (expectedMs <= refuseLate * timeoutMs) return;
    const why =
      `a result is expected after ${Math.round(expectedMs)} ms, too late for ${timeoutMs} ms (timeoutMs): ` +
      `${before} items wait before it. Retry later, raise timeoutMs or add workers.`;
    throw this.full(why, { expectedMs, timeoutMs });
  }

  /** The refusal of a queue that takes no more, with the time until it is empty. */
  full(why: string, details: Readonly<Record<string, unknown>> = {}): BatcherError {
    const { name, maxBatchSize, drainMs } = this.#parts;
    const sum = (of: "pending" | "ackPending"): number => this.lanes.reduce((all, lane) => all + lane[of], 0);
    const [queued, atWorkers] = [sum("pending"), sum("ackPending")];
    const numbers = { queued, atWorkers, drainMs: drainMs(Math.max(queued, maxBatchSize)) };
    return new BatcherError("QUEUE_FULL", `${name}: ${why}`, { ...details, ...numbers });
  }

  async #count(): Promise<void> {
    const { settings, link } = this.#parts;
    if (!link.isConnected) return void (this.#askedAtMs = this.#failure = undefined);
    // Each second another question, for one may be lost; none of them is waited for once there is an answer.
    this.#askedAtMs ??= settings.clock.now();
    try {
      const consumers = await consumersOf(settings);
      this.lanes = figuresOf(consumers);
      this.#countedAtMs = settings.clock.now();
      const arePaused = consumers.length > 0 && consumers.every(({ paused }) => paused === true);
      this.#failure = arePaused ? "an operator has paused its consumers" : undefined;
      await unlimitConsumers(settings, consumers);
    } catch (error) {
      this.#failure = (error as Error).message;
    }
    this.#askedAtMs = undefined;
  }
}
