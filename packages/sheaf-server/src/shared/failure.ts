/** The user's command line is wrong, beyond what single options can say; exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What was asked could not be done, and the message says why and what to do; exit code 1. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}

/** @throws {UsageError} for what is none. */
export function parsedUrl(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw new UsageError(`${text} is not a URL.`);
  }
}

/** Turns a refused value into a usage error. */
export function usage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(error.message) : error;
  }
}
