import type { QueueSettings } from "../queue/options.ts";

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
  readonly holdMs: number;
  /** The fault that there is now. */
  readonly fault: () => Fault | undefined;
  /** Publishes an item that is too old to run. */
  readonly probe: () => void;
}

/**
 * Checks regularly whether items get through. A fault that lasts a second is reported to callers and to readiness checks, even
 * while no calls come.
 */
export class Availability {
  readonly #parts: AvailabilityParts;
  #reason: string | undefined;
  #isLogged = false;
  /** Of the first look in the current run of looks that found a fault. */
  #faultAtMs: number | undefined;
  #probedAtMs = -Infinity;
  #cancelLook: (() => void) | undefined;

  constructor(parts: AvailabilityParts) {
    this.#parts = parts;
  }

  /** Why no items have got through for a second; undefined where they do. */
  get reason(): string | undefined {
    return this.#reason;
  }

  begin(): void {
    this.#cancelLook = this.#parts.settings.clock.after(lookEveryMs, () => {
      this.begin();
      this.#look();
    });
  }

  stop(): void {
    this.#cancelLook?.();
  }

  #look(): void {
    const { settings, holdMs, fault: faultNow, probe } = this.#parts;
    const nowMs = settings.clock.now();
    const fault = faultNow();
    if (fault === undefined) return this.#over(nowMs);
    const faultAtMs = (this.#faultAtMs ??= nowMs);
    if (fault.needsProbe === true && nowMs - this.#probedAtMs >= probeEveryMs) {
      this.#probedAtMs = nowMs;
      probe();
    }
    if (nowMs - faultAtMs < (fault.isHeld === true ? Math.max(faultMs, holdMs) : faultMs)) return;
    this.#reason = fault.reason;
    const isNew = !this.#isLogged && fault.isLogged !== true;
    this.#isLogged = true;
    if (isNew) settings.warn(`sheaf: the queue ${settings.queue} takes no items, and is tried again: ${fault.reason}.`);
  }

  #over(nowMs: number): void {
    const { settings } = this.#parts;
    if (this.#isLogged && this.#faultAtMs !== undefined)
      settings.warn(
        `sheaf: the queue ${settings.queue}: it takes items again, after ${Math.round(nowMs - this.#faultAtMs)} ms.`,
      );
    this.#reason = this.#faultAtMs = undefined;
    this.#isLogged = false;
  }
}
