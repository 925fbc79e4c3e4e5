import type { OpenAILike } from "../../dist/adapters/openai/index.js";

export interface ScriptedRequest {
  readonly body: any;
  readonly options: any;
  /** Ends the request: a reply, or an error to throw. */
  answer(outcome?: unknown): void;
}

/** A client whose requests the test answers by hand; without an argument, with one vector for each input. */
export function scriptedClient(): OpenAILike & { readonly requests: ScriptedRequest[] } {
  const requests: ScriptedRequest[] = [];
  const create = (body: any, options: any): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const answer = (outcome: unknown = replyTo(body.input)): void =>
        outcome instanceof Error ? reject(outcome) : resolve(outcome);
      options.signal.addEventListener("abort", () => reject(options.signal.reason as Error));
      requests.push({ body, options, answer });
    });
  return { requests, embeddings: { create } };
}

/** The length of each text as its vector, in an order that is not the inputs'. */
export function replyTo(input: readonly string[]): object {
  const data = input.map((text, index) => ({ object: "embedding", index, embedding: [text.length] }));
  const tokens = input.reduce((sum, text) => sum + text.length, 0);
  return { data: data.reverse(), usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

/** An error as openai's client throws it. */
export function apiError(status: number, more: { param?: string; headers?: Record<string, string> } = {}): Error {
  const { param, headers = {} } = more;
  return Object.assign(new Error(`${status} refused`), { status, param, headers: new Headers(headers) });
}
