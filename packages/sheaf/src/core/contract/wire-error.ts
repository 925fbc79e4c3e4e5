import { describe } from "../../shared/describe.ts";
import { BatcherError, type ErrorCode } from "./errors.ts";

type Plain = Readonly<Record<string, string | number | boolean>>;

/** An error as it crosses into another thread, process or machine: JSON and structured clone take it. */
export interface WireError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  /** Own enumerable properties that are plain values, such as `code`, `status`, `itemIndex`, `retryAfterMs`. */
  readonly plain?: Plain | undefined;
  /** The numbers in the message of a BatcherError. */
  readonly details?: Plain | undefined;
  readonly cause?: WireError | undefined;
}

const maxPlainProperties = 32;
const maxCauses = 4;
/** Of a message, a stack or a property that is a text: an error goes to every item of a batch, and each gets a copy of it. */
const longestText = 8192;
const builtIn: Readonly<Record<string, ErrorConstructor>> = {
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
};

/** Anything thrown, described. Never throws: an error whose own getters throw is described as one that cannot be read. */
export function describeError(thrown: unknown, causes: number = maxCauses): WireError {
  try {
    if (typeof thrown !== "object" || thrown === null)
      return { name: "Error", message: cut(`Thrown: ${String(thrown)}`) };
    const { name, message, stack, cause, details } = thrown as Partial<BatcherError>;
    return {
      // A field of an error that user code threw can hold anything.
      name: cut(textOf(name, "Error")),
      message: cut(textOf(message, "Thrown: an object without a message")),
      stack: typeof stack === "string" ? cut(stack) : undefined,
      plain: plainOf(thrown),
      // Not by class: a worker may have its own copy of Sheaf.
      details: name === "BatcherError" ? plainOf(details) : undefined,
      cause: cause === undefined || causes === 0 ? undefined : describeError(cause, causes - 1),
    };
  } catch {
    return { name: "Error", message: "Thrown: an error that cannot be read" };
  }
}

const briefChars = 500;

/** The name, the start of the message and the short properties, for an error that is too large to send whole. */
export function abridged({ name, message, plain = {} }: WireError): WireError {
  const isBrief = (value: unknown): boolean => typeof value !== "string" || value.length <= briefChars;
  return {
    name: name.slice(0, briefChars),
    message: `${message.slice(0, briefChars)} (cut off)`,
    plain: Object.fromEntries(Object.entries(plain).filter((property) => property.every(isBrief))),
  };
}

/** Whether a received value is a serialised error. */
export function isWireError(value: unknown): value is WireError {
  if (typeof value !== "object" || value === null) return false;
  const { name, message } = value as Record<string, unknown>;
  return typeof name === "string" && typeof message === "string";
}

/**
 * An error with the same name, message, stack, plain properties and cause; built-in classes and BatcherError keep their
 * class. The description may come from an untrusted sender: whatever does not fit is left out.
 */
export function rebuildError(wire: WireError, causes: number = maxCauses): Error {
  const { name, message, stack, cause } = wire;
  const plain = plainOf(wire.plain);
  const error =
    name === "BatcherError"
      ? new BatcherError(plain["code"] as ErrorCode, message, plainOf(wire.details))
      : new ((Object.hasOwn(builtIn, name) ? builtIn[name] : undefined) ?? Error)(message);
  if (error.name !== name) define(error, "name", name);
  if (typeof stack === "string") define(error, "stack", stack);
  Object.assign(error, plain);
  if (causes > 0 && isWireError(cause)) define(error, "cause", rebuildError(cause, causes - 1));
  return error;
}

function plainOf(properties: unknown): Plain {
  const plain: Record<string, string | number | boolean> = {};
  if (typeof properties !== "object" || properties === null) return plain;
  for (const [key, value] of Object.entries(properties).slice(0, maxPlainProperties)) {
    if (key === "name" || key === "message" || key === "stack" || key === "cause" || key === "__proto__") continue;
    if (typeof value === "string") plain[key] = cut(value);
    else if (typeof value === "number" || typeof value === "boolean") plain[key] = value;
  }
  return plain;
}

const cut = (text: string): string =>
  text.length <= longestText ? text : `${text.slice(0, longestText)}… (${text.length} characters)`;

const textOf = (value: unknown, absent: string): string =>
  typeof value === "string" ? value : value === undefined ? absent : describe(value);

// Not enumerable, as on any error.
function define(error: Error, key: "name" | "stack" | "cause", value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false });
}
