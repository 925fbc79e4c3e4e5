import type { NatsFrontEnd, NatsWorker } from "sheaf/adapters/nats";

export interface FleetPart {
  /** Resolves when the queue can be used; rejects with the reason if it never will. */
  readonly ready: Promise<void>;
  /** Why the queue cannot be used now; undefined if it can. */
  readonly unavailableReason: string | undefined;
  /** Set on a gateway: it puts items into the queue. */
  readonly frontEnd?: NatsFrontEnd<unknown, unknown>;
  /** Set on a worker: it takes items out of the queue. */
  readonly worker?: NatsWorker;
}
