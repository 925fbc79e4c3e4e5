import type { Clock } from "sheaf";
import { Clients, gaveUp, type Retries } from "sheaf/internal/tuning";
import { succeeded, type RequestEnd, type Target } from "./target.ts";

/** A target whose requests are operations of clients that give up and try again. */
export interface PatientTarget extends Target {
  readonly attempts: number;
  readonly longestMs: number;
}

class Failure extends Error {
  readonly end: RequestEnd;
  readonly retryAfterMs: number | undefined;

  constructor(end: RequestEnd) {
    super(String(end.status));
    this.end = end;
    this.retryAfterMs = end.retryAfterMs;
  }
}

/** An operation ends as its last attempt did; with "timeout" where its client left. */
export function patientTarget(target: Target, retries: Retries, clock: Clock, seed: number): PatientTarget {
  const clients = new Clients(retries, clock, seed);

  const attempt = (index: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const cancel = target.send(index, (end) => (succeeded(end.status) ? resolve() : reject(new Failure(end))));
      signal.addEventListener("abort", cancel, { once: true });
    });

  async function endOf(index: number, left: AbortSignal): Promise<RequestEnd> {
    try {
      await clients.operate((signal) => {
        // The run has ended: what is left of the operation sends nothing.
        if (left.aborted) return Promise.reject(new Failure({ status: "cancelled" }));
        return attempt(index, AbortSignal.any([signal!, left]));
      });
      return { status: 200 };
    } catch (error) {
      if (error instanceof Failure) return error.end;
      if (error === gaveUp) return { status: "timeout" };
      throw error;
    }
  }

  async function operate(index: number, left: AbortSignal, done: (end: RequestEnd) => void): Promise<void> {
    const end = await endOf(index, left);
    if (!left.aborted) done(end);
  }

  return {
    get attempts() {
      return clients.attempts;
    },
    get waited() {
      return target.waited;
    },
    longestMs: clients.longestMs,
    close: () => target.close(),
    send(index, done) {
      const left = new AbortController();
      void operate(index, left.signal, done);
      return () => left.abort();
    },
  };
}
