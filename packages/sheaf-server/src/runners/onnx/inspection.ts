import { RunHandle, type Executor } from "sheaf";

/** Asks a worker one question, in a thread of its own that ends with the answer. */
export function inspectionExecutor<Request, Answer>(
  executor: Executor<Request, Answer>,
  signal?: AbortSignal,
): (request: Request) => Promise<Answer> {
  return async (request) => {
    const end = closedOn(signal, executor);
    try {
      await executor.ready();
      const [answer] = Array.from(await executor.run([request], new RunHandle(1, 1)));
      if (answer instanceof Error) throw answer;
      return answer as Answer;
    } finally {
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

/** Which device serves, and which were tried before it. */
export function deviceNote(device: string, refused: readonly string[]): string {
  return refused.length === 0 ? `Runs on ${device}.` : `Runs on ${device}; refused: ${refused.join("; ")}.`;
}
