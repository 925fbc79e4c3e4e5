import { BatcherError, type Batcher } from "sheaf";
import type { RequestEnd, Target } from "./target.ts";

/** Load straight on a batcher, without HTTP: a result counts as 200, an error by its code. */
export function batcherTarget<In>(batcher: Batcher<In, unknown>, item: (index: number) => In): Target {
  async function outcomeOf(index: number, signal: AbortSignal): Promise<RequestEnd> {
    try {
      await batcher(item(index), { signal });
      return { status: 200 };
    } catch (error) {
      return { status: error instanceof BatcherError ? error.code : "error", body: String(error) };
    }
  }
  async function answer(
    index: number,
    controller: AbortController,
    done: (outcome: RequestEnd) => void,
  ): Promise<void> {
    const outcome = await outcomeOf(index, controller.signal);
    if (!controller.signal.aborted) done(outcome);
  }
  return {
    waited: 0,
    close: () => undefined,
    send(index, done) {
      const controller = new AbortController();
      void answer(index, controller, done);
      return () => controller.abort();
    },
  };
}
