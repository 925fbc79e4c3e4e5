import { BatcherError } from "sheaf";
import type { Executor } from "sheaf";
import { runHandle } from "sheaf/executors";

/** As long as a worker may take to load. */
const longestAnswerMs = 600_000;

/** Asks a worker one question, in a thread or process of its own that ends with the answer. */
export function inspectionExecutor<Request, Finding>(
  executor: Executor<Request, Finding>,
  signal?: AbortSignal,
): (request: Request) => Promise<Finding> {
  return async (request) => {
    const end = closedOn(signal, executor);
    const givenUp = new AbortController();
    const giveUp = (): void => givenUp.abort(new BatcherError("RUN_TIMEOUT", `no answer within ${longestAnswerMs} ms`));
    const timer = setTimeout(giveUp, longestAnswerMs);
    try {
      await executor.ready();
      const [answer] = Array.from(await executor.run([request], runHandle({ size: 1, signal: givenUp.signal })));
      if (answer instanceof Error) throw answer;
      return answer as Finding;
    } finally {
      clearTimeout(timer);
      end();
      await executor.close();
    }
  };
}

/** Closes an executor that is starting when `signal` aborts. @returns a function that ends it. */
export function closedOn(signal: AbortSignal | undefined, executor: Pick<Executor<never, never>, "close">): () => void {
  const close = (): void => void executor.close().catch(() => undefined);
  if (signal?.aborted === true) close();
  signal?.addEventListener("abort", close, { once: true });
  return () => signal?.removeEventListener("abort", close);
}
