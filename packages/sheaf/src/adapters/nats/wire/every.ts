import type { Clock } from "../../../core/runtime/runtime.ts";

/** Acts every `ms` from now, also where a turn throws. @returns the end of it. */
export function every(clock: Clock, ms: number, act: () => void): () => void {
  let cancel: () => void;
  const again = (): void => {
    cancel = clock.after(ms, () => {
      again();
      act();
    });
  };
  again();
  return () => cancel();
}
