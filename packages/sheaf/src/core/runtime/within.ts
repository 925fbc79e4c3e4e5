import { systemClock, type Clock } from "./clock.ts";

/** Waits until `done` settles, either way, but no longer than `ms`. @returns whether it settled in time. */
export async function within(
  done: Promise<unknown> | undefined,
  ms: number,
  clock: Clock = systemClock,
): Promise<boolean> {
  let cancel = (): void => undefined;
  const late = new Promise<boolean>((resolve) => (cancel = clock.after(ms, () => resolve(false))));
  const settled = (): boolean => true;
  const inTime = Promise.resolve(done).then(settled, settled);
  return Promise.race([inTime, late]).finally(() => cancel());
}
