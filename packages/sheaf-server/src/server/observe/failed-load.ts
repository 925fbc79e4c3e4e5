import { messageOf } from "../../problems/problem.ts";

/** The fields of a log line that say why a load failed. */
interface FailedLoad {
  /** File and line of the model's program where an exception of Python was raised. */
  readonly place: string | undefined;
  readonly err: object;
}

const maxCauses = 10;

/**
 * Why a load failed, for one line of the log: the type and the stack of the first cause, and the message of the error, which
 * holds those of its causes. The logger's own form of an error would repeat them, and give no type of another language.
 */
export function failedLoad(error: unknown): FailedLoad {
  const { name, stack, place } = firstCause(error);
  // The logger calls an object by its `name` where it has no constructor.
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
