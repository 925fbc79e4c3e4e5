import type { Executor } from "sheaf";

/** Asks a worker one question, in a thread of its own that ends with the answer. */
export function inspectionExecutor<Request, Answer>(
  executor: Executor<Request, Answer>,
): (request: Request) => Promise<Answer> {
  return async (request) => {
    try {
      await executor.ready();
      const { signal } = new AbortController();
      const [answer] = Array.from(await executor.run([request], { signal, batchId: 1, size: 1, attempt: 1 }));
      if (answer instanceof Error) throw answer;
      return answer as Answer;
    } finally {
      await executor.close();
    }
  };
}

/** Which device serves, and which were tried before it. */
export function deviceNote(device: string, refused: readonly string[]): string {
  return refused.length === 0 ? `Runs on ${device}.` : `Runs on ${device}; refused: ${refused.join("; ")}.`;
}

/** What is said of a model whose results depend on their batch-mates. */
export function unsteadyNote(rate: number, exact: boolean): string {
  const share = `${(rate * 100).toPrecision(2)} %`;
  return exact
    ? `Its results would depend on their batch-mates (by up to ${share}), so items run one by one (--exact).`
    : `Its results depend on their batch-mates: in a batch they differ by up to ${share}, as those of dynamically quantised models do. --exact runs items one by one.`;
}
