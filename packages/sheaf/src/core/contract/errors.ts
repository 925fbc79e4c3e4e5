/** A failure of a call that is not the caller's mistake; that is a TypeError or RangeError. */
export type ErrorCode =
  | "QUEUE_FULL"
  | "CLOSED"
  | "TIMEOUT"
  | "RUN_TIMEOUT"
  | "ITEM_TOO_LARGE"
  | "RESULT_COUNT"
  | "MISSING_RESULT"
  | "WORKER_CRASHED"
  | "INVALID_INPUT";

const brand = Symbol.for("sheaf.BatcherError");

/** The one error class of Sheaf. `code` is stable; `details` carries the numbers the message names. */
export class BatcherError extends Error {
  override readonly name = "BatcherError";
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  // An error of the package's other build counts too: a program may load it by `import` here and by `require` there.
  static {
    Object.defineProperty(this.prototype, brand, { value: true });
    Object.defineProperty(this, Symbol.hasInstance, {
      value(this: unknown, value: unknown): boolean {
        if (this === BatcherError) return typeof value === "object" && value !== null && brand in value;
        return Function.prototype[Symbol.hasInstance].call(this as () => void, value);
      },
    });
  }
}
