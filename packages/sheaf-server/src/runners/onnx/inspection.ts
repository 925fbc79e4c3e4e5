import { RunHandle, type Executor } from "sheaf";

/** Asks a worker one question, in a thread of its own that ends with the answer. */
export function inspectionExecutor<Request, Answer>(
  executor: Executor<Request, Answer>,
): (request: Request) => Promise<Answer> {
  return async (request) => {
    try {
      await executor.ready();
      const [answer] = Array.from(await executor.run([request], new RunHandle(1, 1)));
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
