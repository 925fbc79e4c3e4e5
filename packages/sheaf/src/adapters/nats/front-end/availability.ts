import type { QueueSettings } from "../queue/options.ts";
import type { QueueConnection } from "../wire/connection.ts";
import { every } from "../wire/every.ts";

const lookEveryMs = 250;
/** A shorter fault is not reported. */
const faultMs = 1000;
const probeEveryMs = 1000;

/** Why items do not get through. */
export interface Fault {
  readonly reason: string;
  /** Calls are held through it, so that it counts after `holdMs` only. */
  readonly isHeld?: boolean | undefined;
  /** Only another item shows when it is over. */
  readonly needsProbe?: boolean | undefined;
  /** The part that found it has logged it. */
  readonly isLogged?: boolean | undefined;
}

export interface AvailabilityParts {
  readonly settings: QueueSettings;
  readonly link: Pick<QueueConnection, "isConnected">;
  readonly holdMs: number;
  /** The fault that there is now. */
  readonly fault: () => Fault | undefined;
  /** Publishes an item that is too old to run. */
  readonly probe: () => void;
  /** The queue counts as unavailable from now on. */
  readonly fell: (reason: string) => void;
}

/**
 * Checks regularly whether items get through. A fault that lasts a second is logged, and reported to callers and to readiness
 * checks, even while no calls come.
 */
export class Availability {
  readonly stop: () => void;
  readonly #parts: AvailabilityParts;
  #reason: string | undefined;
  #isLogged = false;
  /** Of the first look in the current run of looks that found a fault. */
  #faultAtMs: number | undefined;
  #probedAtMs = -Infinity;

  constructor(parts: AvailabilityParts) {
    this.#parts = parts;
    this.stop = every(parts.settings.clock, lookEveryMs, () => this.#look());
  }

  /** Why no items have got through for a second; undefined where they do. */
  get reason(): string | undefined {
    return this.#reason;
  }

  #look(): void {
    const { settings, link, holdMs, fault: faultNow, probe, fell } = this.#parts;
    // Whether a fault is over is seen when the connection is back.
    if (!link.isConnected) return;
    const nowMs = settings.clock.now();
    const fault = faultNow();
    if (fault === undefined) return this.#over(nowMs);
    const { reason, isHeld = false, needsProbe = false, isLogged = false } = fault;
    const lastedMs = nowMs - (this.#faultAtMs ??= nowMs);
    if (needsProbe && nowMs - this.#probedAtMs >= probeEveryMs) {
      this.#probedAtMs = nowMs;
      probe();
    }
    if (lastedMs < faultMs) return;
    if (!isHeld || lastedMs >= holdMs) {
      const hasFallen = this.#reason === undefined;
      this.#reason = reason;
      if (hasFallen) fell(reason);
    }
    if (!this.#isLogged && !isLogged)
      settings.warn(`sheaf: the queue ${settings.queue} takes no items, and is tried again: ${reason}.`);
    this.#isLogged = true;
  }

  #over(nowMs: number): void {
    const { settings } = this.#parts;
    if (this.#isLogged) {
      const tookMs = Math.round(nowMs - (this.#faultAtMs ?? nowMs));
      settings.warn(`sheaf: the queue ${settings.queue}: it takes items again, after ${tookMs} ms.`);
    }
    this.#reason = this.#faultAtMs = undefined;
    this.#isLogged = false;
  }
}
