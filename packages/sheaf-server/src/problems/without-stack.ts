/**
 * Errors that `make` makes or throws at once have no stack. A refusal's would say nothing but that this server refuses, and under a flood two of
 * them cost a fifth of the whole answer, on the thread that all models share.
 */
export function withoutStack<Made>(make: () => Made): Made {
  const { stackTraceLimit } = Error;
  // Not an assignment: where the intrinsics are frozen that would throw, and the error would have a stack after all.
  Reflect.set(Error, "stackTraceLimit", 0);
  try {
    return make();
  } finally {
    Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  }
}
