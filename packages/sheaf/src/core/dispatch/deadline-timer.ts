import type { Admission } from "../queue/admission.ts";
import type { Settlement } from "./settlement.ts";
import { shortestTimerMs, type Clock } from "../runtime/clock.ts";

/** Calls out the deadlines of those who wait, run, or stand at the door, with one timer for the earliest of them. */
export class DeadlineTimer<In, Out> {
  readonly #clock: Clock;
  readonly #calls: Settlement<In>;
  readonly #admission: Admission<In, Out>;
  #atMs = Infinity;
  #cancel: () => void = () => undefined;
  #stopped = false;

  constructor(clock: Clock, calls: Settlement<In>, admission: Admission<In, Out>) {
    this.#clock = clock;
    this.#calls = calls;
    this.#admission = admission;
  }

  /** Called whenever there may be another earliest deadline. */
  look(): void {
    const atMs = Math.min(this.#calls.cancellation.nextDeadlineMs, this.#admission.waiters.earliestDeadlineMs);
    // A timer that is no longer needed must not keep the process alive; one that is merely early may fire.
    if ((atMs >= this.#atMs && atMs !== Infinity) || this.#stopped) return;
    this.#cancel();
    this.#atMs = atMs;
    if (atMs === Infinity) return;
    this.#cancel = this.#clock.after(Math.max(shortestTimerMs, atMs - this.#clock.now()), () => {
      this.#atMs = Infinity;
      const nowMs = this.#clock.now();
      this.#calls.cancellation.expire(nowMs);
      this.#admission.expire(nowMs);
      this.look();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }
}
