import { BatcherError } from "../../../core/contract/errors.ts";
import type { CallOptions } from "../../../core/contract/options.ts";
import { laneOf } from "../../../core/contract/settings.ts";
import { laneFigures, type LaneFigures } from "../queue/lane-figures.ts";
import type { QueueSettings } from "../queue/options.ts";

const countEveryMs = 1000;

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
  /** Of every lane; none before the first answer, and none without JetStream. */
  lanes: readonly LaneFigures[] = [];
  #countedAtMs = 0;
  #cancelCount: (() => void) | undefined;
  readonly #parts: QueueLoadParts;

  constructor(parts: QueueLoadParts) {
    this.#parts = parts;
  }

  begin(): void {
    this.#cancelCount = this.#parts.settings.clock.after(countEveryMs, () => {
      this.begin();
      void this.#count();
    });
  }

  stop(): void {
    this.#cancelCount?.();
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
    if (!this.#parts.link.isConnected) return;
    // A server that does not answer shows in `isConnected`, and these grow old.
    const lanes = await laneFigures(this.#parts.settings).catch(() => undefined);
    if (lanes === undefined) return;
    this.lanes = lanes;
    this.#countedAtMs = this.#parts.settings.clock.now();
  }
}
