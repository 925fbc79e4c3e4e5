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

/** NATS or its workers can not be reached: somebody else may serve the caller, or these a little later. */
export const unavailable = (message: string): NatsQueueError =>
  new NatsQueueError("UNAVAILABLE", `${message} Try again.`);

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
  // Anything can stand in a field of an error that a user's code threw.
  const { name, message } = thrown as { readonly name: unknown; readonly message: unknown };
  return { name: String(name), message: String(message), plain, details };
}

const briefChars = 500;

/** What is left of an error that can not travel whole. Never throws. */
export function describeBriefly(thrown: unknown): WireError {
  try {
    const { name, message, plain = {} } = describeError(thrown);
    const isBrief = (value: unknown): boolean => typeof value !== "string" || value.length <= briefChars;
    const kept = Object.entries(plain).filter((property) => property.every(isBrief));
    return {
      name: name.slice(0, briefChars),
      message: `${message.slice(0, briefChars)} (cut off)`,
      plain: Object.fromEntries(kept),
    };
  } catch {
    return { name: "Error", message: "The model threw something that can not be described." };
  }
}

/** Whether what came is an error as it travels. */
export function isWireError(value: unknown): value is WireError {
  if (typeof value !== "object" || value === null) return false;
  const { name, message, plain, details } = value as Record<string, unknown>;
  const isRecord = (held: unknown): boolean => held === undefined || (typeof held === "object" && held !== null);
  return typeof name === "string" && typeof message === "string" && isRecord(plain) && isRecord(details);
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
