import { rebuildError, type WireError } from "../../../core/contract/wire-error.ts";

/** `UNAVAILABLE`: NATS or its workers cannot be reached. `DEAD_LETTERED`: the item was given up; `deadLetterId` finds it. */
export type NatsQueueErrorCode = "UNAVAILABLE" | "DEAD_LETTERED";

/**
 * The errors of a call that only a queue between machines has. Everything else is a `BatcherError`, as on one machine.
 * @experimental It may change in any minor version.
 */
export class NatsQueueError extends Error {
  override readonly name = "NatsQueueError";
  readonly code: NatsQueueErrorCode;
  /** Number of the item in its stream, also in the dead letter. */
  readonly deadLetterId: string | undefined;

  constructor(code: NatsQueueErrorCode, message: string, deadLetterId?: string) {
    super(message);
    this.code = code;
    this.deadLetterId = deadLetterId;
  }
}

/** NATS or its workers cannot be reached: another service may serve the caller, or these may a little later. */
export const unavailable = (message: string): NatsQueueError =>
  new NatsQueueError("UNAVAILABLE", `${message} Try again.`);

/** An error of a reply: ours keep their class. */
export function errorFrom(wire: WireError): Error {
  if (wire.name !== "NatsQueueError") return rebuildError(wire);
  const { code, deadLetterId: id } = wire.plain ?? {};
  return new NatsQueueError(code as NatsQueueErrorCode, wire.message, id === undefined ? id : String(id));
}
