/** The user's command line is wrong, in a way that no single option's check finds; exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command could not be carried out, and the message says why and what to do; exit code 1. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}

/** @throws {UsageError} if it is not a URL. */
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
