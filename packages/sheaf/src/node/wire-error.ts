import { inspect } from "node:util";
import { BatcherError, type ErrorCode } from "../core/errors.ts";

/** What is left of an error when it crosses into another thread or process. */
export interface ErrorDescription {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** Own enumerable properties that are plain values, such as `code`, `status`, `itemIndex`, `retryAfterMs`. */
  readonly plain: Plain;
  /** Of a BatcherError: the numbers of its message. */
  readonly details: Plain | undefined;
  readonly cause: ErrorDescription | undefined;
}

type Plain = Readonly<Record<string, string | number | boolean>>;

const maxPlainProperties = 32;
const maxCauses = 4;
const builtIn: Readonly<Record<string, ErrorConstructor>> = {
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
};

/** Anything thrown, as a plain object that structured clone takes. */
export function describeError(thrown: unknown, causes: number = maxCauses): ErrorDescription {
  if (!isErrorLike(thrown)) {
    return {
      name: "Error",
      message: `Thrown: ${inspect(thrown)}`,
      stack: undefined,
      plain: {},
      details: undefined,
      cause: undefined,
    };
  }
  return {
    name: textOf(thrown.name),
    message: textOf(thrown.message),
    stack: typeof thrown.stack === "string" ? thrown.stack : undefined,
    plain: plainOf(thrown),
    details: detailsOf(thrown),
    cause: thrown.cause === undefined || causes === 0 ? undefined : describeError(thrown.cause, causes - 1),
  };
}

/** An error with the same name, message, stack, plain properties and cause; built-in classes and BatcherError keep their class. */
export function rebuildError({ name, message, stack, plain, details, cause }: ErrorDescription): Error {
  const error =
    name === "BatcherError"
      ? new BatcherError(plain["code"] as ErrorCode, message, details)
      : new (builtIn[name] ?? Error)(message);
  if (error.name !== name) define(error, "name", name);
  if (stack !== undefined) define(error, "stack", stack);
  for (const [key, value] of Object.entries(plain)) Object.assign(error, { [key]: value });
  if (cause !== undefined) define(error, "cause", rebuildError(cause));
  return error;
}

// Not by class: a worker may have a copy of Sheaf of its own.
function detailsOf(thrown: Error): Plain | undefined {
  const { details } = thrown as { details?: unknown };
  return thrown.name === "BatcherError" && typeof details === "object" && details !== null
    ? plainOf(details)
    : undefined;
}

function plainOf(properties: object): Plain {
  const plain: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(properties).slice(0, maxPlainProperties)) {
    if (key === "name" || key === "message" || key === "stack" || key === "__proto__") continue;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") plain[key] = value;
  }
  return plain;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : inspect(value));

// A DOMException (an AbortError) is an Error too; an error of another realm is not instanceof ours.
const isErrorLike = (thrown: unknown): thrown is Error =>
  thrown instanceof Error ||
  (typeof thrown === "object" && thrown !== null && "message" in thrown && "name" in thrown && "stack" in thrown);

// Not enumerable, as on any error.
function define(error: Error, key: "name" | "stack" | "cause", value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false });
}
