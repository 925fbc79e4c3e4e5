/** Token ids of a word of the pre-tokenizer. */
export interface WordModel {
  /**
   * Appends the ids of a word.
   * @throws {Error} the word has a character that the vocabulary has no token for.
   */
  encode(word: string, ids: number[]): void;
  /**
   * Appends the ids that every word with this prefix begins with, as far as they are known.
   * @default appends none
   */
  readonly encodeStart?: ((start: string, ids: number[]) => void) | undefined;
  idOf(token: string): number | undefined;
}

export type ModelConfig = Readonly<Record<string, unknown>>;

/** @throws {Error} it is none. */
export function vocabularyOf({ vocab }: ModelConfig): Map<string, number> {
  if (typeof vocab !== "object" || vocab === null || Array.isArray(vocab))
    throw new Error("the vocabulary must be an object");
  return new Map(Object.entries(vocab as Record<string, number>));
}

/** The text itself; an empty one for anything else. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
