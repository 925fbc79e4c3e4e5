import { BytePairs } from "./byte-pairs.ts";
import { Unigram } from "./unigram.ts";
import { textOf, vocabularyOf, type ModelConfig, type WordModel } from "./word-model.ts";

/** @throws {Error} a type that is not served, or a vocabulary that is broken. */
export function wordModelOf(config: unknown): WordModel {
  const own = (config ?? {}) as ModelConfig;
  // Older files have no type.
  const type = own["type"] ?? (own["merges"] !== undefined ? "BPE" : own["continuing_subword_prefix"] !== undefined ? "WordPiece" : "Unigram"); // prettier-ignore
  const name = textOf(type);
  const make = Object.hasOwn(wordModels, name) ? wordModels[name] : undefined;
  if (make === undefined) throw new Error(`the model ${JSON.stringify(type)} is not served`);
  return make(own);
}

/** By type. */
export const wordModels: Readonly<Record<string, ((config: ModelConfig) => WordModel) | undefined>> = {
  WordPiece: (config) => cached(new WordPiece(config)),
  WordLevel: (config) => new WordLevel(config),
  BPE: (config) => cached(new BytePairs(config)),
  Unigram: (config) => cached(new Unigram(config)),
};

const mostCachedWords = 20_000;
const longestCachedWord = 64;

/** Words come again: their ids are kept, up to a number of them. */
function cached(model: WordModel): WordModel {
  const known = new Map<string, readonly number[]>();
  return {
    idOf: (token) => model.idOf(token),
    encodeStart: model.encodeStart?.bind(model),
    encode(word, ids) {
      if (word.length > longestCachedWord) return model.encode(word, ids);
      let own = known.get(word);
      if (own === undefined) {
        const found: number[] = [];
        model.encode(word, found);
        own = found;
        if (known.size >= mostCachedWords) known.clear();
        known.set(word, own);
      }
      for (const id of own) ids.push(id);
    },
  };
}

/** The longest piece of the vocabulary at each place (Schuster and Nakajima 2012); a word without one is unknown as a whole. */
class WordPiece implements WordModel {
  readonly #vocabulary: ReadonlyMap<string, number>;
  readonly #prefix: string;
  readonly #unknown: number;
  readonly #mostCharacters: number;
  readonly #longest: number;

  constructor(config: ModelConfig) {
    this.#vocabulary = vocabularyOf(config);
    this.#prefix = (config["continuing_subword_prefix"] as string | undefined) ?? "##";
    this.#mostCharacters = (config["max_input_chars_per_word"] as number | undefined) ?? 100;
    this.#longest = [...this.#vocabulary.keys()].reduce((most, { length }) => Math.max(most, length), 0);
    const unknown = this.#vocabulary.get(textOf(config["unk_token"] ?? "[UNK]"));
    if (unknown === undefined) throw new Error("the vocabulary has no unk_token");
    this.#unknown = unknown;
  }

  idOf(token: string): number | undefined {
    return this.#vocabulary.get(token);
  }

  encode(word: string, ids: number[]): void {
    const first = ids.length;
    const isLong = word.length > this.#mostCharacters && charactersOf(word) > this.#mostCharacters;
    for (let start = 0; start < word.length;) {
      const prefix = start === 0 ? "" : this.#prefix;
      let end = isLong ? start : Math.min(word.length, start + this.#longest);
      let id: number | undefined;
      for (; end > start; end--) {
        id = this.#vocabulary.get(prefix + word.slice(start, end));
        if (id !== undefined) break;
      }
      if (id === undefined) {
        ids.length = first;
        ids.push(this.#unknown);
        return;
      }
      ids.push(id);
      start = end;
    }
  }
}

function charactersOf(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) !== 0xdc00) count++;
  return count;
}

class WordLevel implements WordModel {
  readonly #vocabulary: ReadonlyMap<string, number>;
  readonly #unknown: number | undefined;

  constructor(config: ModelConfig) {
    this.#vocabulary = vocabularyOf(config);
    this.#unknown = this.#vocabulary.get(textOf(config["unk_token"] ?? "<unk>"));
  }

  idOf(token: string): number | undefined {
    return this.#vocabulary.get(token);
  }

  encode(word: string, ids: number[]): void {
    const id = this.#vocabulary.get(word) ?? this.#unknown;
    if (id === undefined) throw new Error(`the vocabulary has neither ${JSON.stringify(word)} nor an unk_token`);
    ids.push(id);
  }
}
