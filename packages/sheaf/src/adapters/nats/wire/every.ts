import type { Clock } from "../../../core/runtime/runtime.ts";

/** Calls `act` every `ms`, even after it has thrown. @returns a function that stops it */
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
