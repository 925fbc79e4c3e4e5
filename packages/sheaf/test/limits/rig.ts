import { openaiEmbeddings, openaiFetch, type OpenAIEmbeddings } from "../../dist/adapters/openai/index.js";
import type { VirtualClock } from "../../dist/testing/index.js";

/** Embeddings of a fake API. */
export const embeddingsOf = (api: { readonly fetch: typeof fetch }, options: object): OpenAIEmbeddings =>
  openaiEmbeddings(openaiFetch({ baseURL: "http://api.invalid/v1", fetch: api.fetch }), { model: "m", ...options });

export const at = (clock: VirtualClock, atMs: number): Promise<void> =>
  new Promise((resolve) => void clock.at(atMs, resolve));

/** Callers who call again and again until that time; the errors that they got. */
export function busy(
  clock: VirtualClock,
  embeds: readonly ((text: string) => Promise<unknown>)[],
  endAtMs: number,
  callers = 500,
): unknown[] {
  const errors: unknown[] = [];
  const call = async (caller: number): Promise<void> => {
    const embed = embeds[caller % embeds.length]!;
    for (let i = 0; clock.now() < endAtMs; i++)
      await embed(`${caller} ${i} ${"some words ".repeat(1 + ((caller + i) % 60))}`).catch(async (error: unknown) => {
        errors.push(error);
        await clock.sleep(1000);
      });
  };
  for (let caller = 0; caller < callers; caller++) void call(caller);
  return errors;
}
