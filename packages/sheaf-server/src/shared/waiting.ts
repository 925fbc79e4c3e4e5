/** Waits until `done` settles, either way, but no longer than `ms`. @returns whether it settled in time. */
export async function within(done: Promise<unknown> | undefined, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, ms, false)));
  const settled = (): boolean => true;
  const inTime = Promise.resolve(done).then(settled, settled);
  return Promise.race([inTime, late]).finally(() => clearTimeout(timer));
}

/** Waits for `promise`. Rejects with the signal's reason if it aborts first. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
  });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener("abort", abort));
}
