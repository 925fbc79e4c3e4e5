import type { ModelConfig, WordModel } from "./word-model.ts";

/** What an unknown character scores below the lowest score of the vocabulary, as in SentencePiece. */
const unknownPenalty = 10;

/** The likeliest pieces of a unigram language model (Kudo 2018, arXiv 1804.10959). */
export class Unigram implements WordModel {
  readonly #ids: Map<string, number> = new Map();
  readonly #root: PieceTrie = new PieceTrie();
  readonly #scores: readonly number[];
  readonly #unknown: number;
  readonly #unknownScore: number;
  readonly #bytes: readonly number[] | undefined;
  /** Length of the longest piece. */
  readonly #mostCharacters: number;

  /** @throws {Error} a vocabulary without an unknown token. */
  constructor({ vocab, unk_id: unknown, byte_fallback: fallsBack }: ModelConfig) {
    const pieces = vocab as readonly (readonly [string, number])[];
    if (!Array.isArray(vocab)) throw new Error("the vocabulary must be a list of pieces");
    if (typeof unknown !== "number") throw new Error("the vocabulary has no unk_id");
    this.#scores = pieces.map(([, score]) => score);
    this.#unknown = unknown;
    this.#mostCharacters = pieces.reduce((most, [piece]) => Math.max(most, piece.length), 2);
    this.#unknownScore = this.#scores.reduce((least, score) => Math.min(least, score), Infinity) - unknownPenalty;
    pieces.forEach(([piece], id) => {
      this.#ids.set(piece, id);
      if (piece !== "") this.#root.add(piece, id);
    });
    const bytes = Array.from({ length: 256 }, (_, byte) =>
      this.#ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
    );
    if (fallsBack === true && !bytes.includes(undefined)) this.#bytes = bytes as number[];
  }

  idOf(token: string): number | undefined {
    return this.#ids.get(token);
  }

  encode(word: string, ids: number[]): void {
    this.#addIds(word, word.length, ids);
  }

  encodeStart(start: string, ids: number[]): void {
    this.#addIds(start, start.length - this.#mostCharacters, ids);
  }

  /** Appends the ids up to `stop`. If that is not the end of `word`, it appends only ids that no continuation can change. */
  #addIds(word: string, stop: number, ids: number[]): void {
    const { length } = word;
    const best = new Float64Array(length + 1);
    /** Where the last piece of the best way to each place begins; -1 where none does. */
    const from = new Int32Array(length + 1).fill(-1);
    const piece = new Int32Array(length + 1);
    let reached = 0;
    let start = 0;
    while (start < stop) {
      const width = (word.codePointAt(start) as number) > 0xffff ? 2 : 1;
      const score = best[start]!;
      let hasSingle = false;
      let node = this.#root;
      for (let end = start; end < length;) {
        const child = node.next(word.charCodeAt(end));
        if (child === undefined) break;
        node = child;
        end += 1;
        if (node.id < 0) continue;
        const candidate = score + this.#scores[node.id]!;
        if (from[end]! < 0 || candidate > best[end]!) {
          best[end] = candidate;
          from[end] = start;
          piece[end] = node.id;
          if (end > reached) reached = end;
        }
        if (end - start === width) hasSingle = true;
      }
      if (!hasSingle) {
        const end = start + width;
        const candidate = score + this.#unknownScore;
        if (from[end]! < 0 || candidate > best[end]!) {
          best[end] = candidate;
          from[end] = start;
          piece[end] = this.#unknown;
          if (end > reached) reached = end;
        }
      }
      start += width;
    }
    let end = stop === length ? length : settledAt(from, start, reached);
    // A run of unknown characters may go on.
    while (stop < length && end > 0 && piece[end] === this.#unknown) end = from[end]!;
    for (const id of this.#idsTo(word, end, from, piece)) ids.push(id);
  }

  /** Backwards from a place. Unknown characters in a row are one token. */
  #idsTo(word: string, end: number, from: Int32Array, piece: Int32Array): number[] {
    const ids: number[] = [];
    for (let to = end; to > 0;) {
      let start = from[to]!;
      if (piece[to] !== this.#unknown) {
        ids.push(piece[to]!);
        to = start;
        continue;
      }
      while (start > 0 && piece[start] === this.#unknown) start = from[start]!;
      const text = word.slice(start, to);
      const known = this.#ids.get(text);
      if (known !== undefined) ids.push(known);
      else if (this.#bytes !== undefined) for (const byte of Buffer.from(text).reverse()) ids.push(this.#bytes[byte]!);
      else ids.push(this.#unknown);
      to = start;
    }
    return ids.reverse();
  }
}

/** The last place that the best ways to all places still open have in common: what lies before it stays as it is. */
export function settledAt(from: Int32Array, start: number, reached: number): number {
  let common = start;
  for (let end = start + 1; end <= reached; end++) {
    if (from[end]! < 0) continue;
    let at = end;
    while (at !== common) {
      if (at > common) at = from[at]!;
      else common = from[common]!;
    }
  }
  return common;
}

/** A trie by UTF-16 code units. */
class PieceTrie {
  /** -1 where no piece ends. */
  id = -1;
  #next: Map<number, PieceTrie> | undefined;

  next(unit: number): PieceTrie | undefined {
    return this.#next?.get(unit);
  }

  add(text: string, id: number): void {
    // oxlint-disable-next-line typescript/no-this-alias
    let node: PieceTrie = this;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      node.#next ??= new Map();
      let child = node.#next.get(unit);
      if (child === undefined) node.#next.set(unit, (child = new PieceTrie()));
      node = child;
    }
    node.id = id;
  }
}
