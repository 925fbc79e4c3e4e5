import { messageOf } from "../../problems/problem.ts";

interface FailedLoad {
  /** File and line in the model's program where a Python exception was raised. */
  readonly place: string | undefined;
  readonly err: object;
}

const maxCauses = 10;

/**
 * Why a load failed, as one log line: the type and stack of the first cause, and the message of the error, which includes those of
 * its causes. The logger's own serialization would repeat them, and omit types of other languages.
 */
export function failedLoad(error: unknown): FailedLoad {
  const { name, stack, place } = firstCause(error);
  // The logger uses `name` as the type of an object without a constructor.
  const err = Object.create(null, {
    name: { value: name },
    message: { value: messageOf(error), enumerable: true },
    stack: { value: stack, enumerable: true },
  }) as object;
  return { place, err };
}

function firstCause(error: unknown): Error & { readonly place?: string } {
  let first = error instanceof Error ? error : new Error(messageOf(error));
  for (let i = 0; i < maxCauses && first.cause instanceof Error; i++) first = first.cause;
  return first;
}
