import type { NatsFrontEnd, NatsWorker } from "sheaf/adapters/nats";

/** A model's part in a fleet: the side of the queue on which it stands. */
export interface FleetPart {
  /** Resolves when the queue can be used; rejects with the reason if it never will. */
  readonly ready: Promise<void>;
  /** Why the queue cannot be used now; undefined where it can. */
  readonly unavailableReason: string | undefined;
  /** A gateway's, where its items go in. */
  readonly frontEnd?: NatsFrontEnd<unknown, unknown>;
  /** A worker's, where its items come out. */
  readonly worker?: NatsWorker;
}
