import { BatcherError, type ErrorCode } from "../../core/errors.ts";

/** `UNAVAILABLE`: NATS or its workers can not be reached. `DEAD_LETTERED`: the item was given up; `deadLetterId` finds it. */
export type NatsQueueErrorCode = "UNAVAILABLE" | "DEAD_LETTERED";

/** What only a queue between machines can do to a call. Everything else is a `BatcherError`, as on one machine. */
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

/** An error as it travels in a reply. */
export interface WireError {
  readonly name: string;
  readonly message: string;
  /** Own properties that are plain values, such as `code`, `status`, `itemIndex`. */
  readonly plain?: Readonly<Record<string, string | number | boolean>> | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

const maxProperties = 32;

export function describeError(thrown: unknown): WireError {
  if (!(thrown instanceof Error)) return { name: "Error", message: `Thrown: ${String(thrown)}` };
  const plain: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(thrown).slice(0, maxProperties)) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") plain[key] = value;
  }
  const details = thrown instanceof BatcherError ? thrown.details : undefined;
  return { name: thrown.name, message: thrown.message, plain, details };
}

/** An error with the same name, message and plain properties; ours keep their class. */
export function rebuildError({ name, message, plain = {}, details }: WireError): Error {
  if (name === "BatcherError") return new BatcherError(plain["code"] as ErrorCode, message, details);
  if (name === "NatsQueueError") {
    const id = plain["deadLetterId"];
    return new NatsQueueError(plain["code"] as NatsQueueErrorCode, message, id === undefined ? id : String(id));
  }
  const error = new Error(message);
  Object.defineProperty(error, "name", { value: name, writable: true, configurable: true, enumerable: false });
  for (const [key, value] of Object.entries(plain)) {
    if (key !== "__proto__" && key !== "name" && key !== "message") Object.assign(error, { [key]: value });
  }
  return error;
}
