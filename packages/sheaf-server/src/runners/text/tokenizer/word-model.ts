/** Token ids of a word of the pre-tokenizer. */
export interface WordModel {
  /**
   * Appends the ids of a word; the end of a long word may be left out once there are more than `most`.
   * @throws {Error} the word has a character that the vocabulary has no token for.
   */
  encode(word: string, ids: number[], most: number): void;
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
