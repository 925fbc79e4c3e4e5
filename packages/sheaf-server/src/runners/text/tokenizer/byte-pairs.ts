import { vocabularyOf, type ModelConfig, type WordModel } from "./word-model.ts";

/** The token that two become, and the rank of their merge: lower ones go first. */
interface Merge {
  readonly rank: number;
  readonly id: number;
}

/** Byte pair encoding (Sennrich 2016): the pair with the lowest rank is merged, the left one of equals, until none is left. */
export class BytePairs implements WordModel {
  readonly #vocabulary: ReadonlyMap<string, number>;
  /** By left id × factor + right id. */
  readonly #merges: Map<number, Merge> = new Map();
  readonly #factor: number;
  readonly #prefix: string;
  readonly #suffix: string;
  readonly #unknown: number | undefined;
  readonly #isUnknownFused: boolean;
  readonly #bytes: readonly number[] | undefined;
  readonly #ignoresMerges: boolean;
  /** Symbols in the longest token. */
  #longest = 1;
  /** By symbol: symbols in the longest token that contains it, if that is more than one. */
  readonly #widths: Map<number, number> = new Map();
  /** Characters of the longest token that can be a whole word. */
  readonly #longestToken: number;

  /** @throws {Error} a merge of tokens that the vocabulary lacks; dropout, which makes tokens of chance. */
  constructor(config: ModelConfig) {
    const { merges, unk_token, continuing_subword_prefix, end_of_word_suffix, byte_fallback, dropout } = config;
    if (typeof dropout === "number" && dropout > 0) throw new Error("dropout is not served: set it to null");
    this.#vocabulary = vocabularyOf(config);
    this.#factor = [...this.#vocabulary.values()].reduce((most, id) => Math.max(most, id), 0) + 1;
    this.#prefix = (continuing_subword_prefix as string | null | undefined) ?? "";
    this.#suffix = (end_of_word_suffix as string | null | undefined) ?? "";
    this.#unknown = typeof unk_token === "string" ? this.#vocabulary.get(unk_token) : undefined;
    this.#isUnknownFused = config["fuse_unk"] === true;
    this.#ignoresMerges = config["ignore_merges"] === true;
    const bytes = Array.from({ length: 256 }, (_, byte) =>
      this.#vocabulary.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
    );
    if (byte_fallback === true && !bytes.includes(undefined)) this.#bytes = bytes as number[];
    if (byte_fallback === true && this.#bytes === undefined)
      throw new Error("byte_fallback needs a token for each byte");
    (merges as readonly (string | readonly [string, string])[]).forEach((merge, rank) => {
      const [left, right] = typeof merge === "string" ? splitOnce(merge) : merge;
      const ids = [left, right, left + right.slice(this.#prefix.length)].map((token) => this.#vocabulary.get(token));
      const [leftId, rightId, id] = ids;
      if (leftId === undefined || rightId === undefined || id === undefined)
        throw new Error(`the merge ${JSON.stringify(merge)} has a token that the vocabulary lacks`);
      this.#merges.set(leftId * this.#factor + rightId, { rank, id });
      const width = left.length + right.length;
      this.#longest = Math.max(this.#longest, width);
      for (const character of left + right) {
        const symbol = this.#vocabulary.get(character);
        if (symbol !== undefined) this.#widths.set(symbol, Math.max(width, this.#widths.get(symbol) ?? 1));
      }
    });
    for (const id of [...(this.#bytes ?? []), this.#unknown]) if (id !== undefined) this.#widths.set(id, this.#longest);
    this.#longestToken = this.#ignoresMerges
      ? [...this.#vocabulary.keys()].reduce((most, { length }) => Math.max(most, length), 0)
      : 0;
  }

  idOf(token: string): number | undefined {
    return this.#vocabulary.get(token);
  }

  encode(word: string, ids: number[]): void {
    const own = this.#ignoresMerges ? this.#vocabulary.get(word) : undefined;
    if (own !== undefined) {
      ids.push(own);
      return;
    }
    const symbols = this.#symbols(word);
    const merged = symbols.length < shortWord ? this.#mergeShort(symbols) : this.#mergeLong(symbols).filter(isToken);
    for (const id of merged) ids.push(id);
  }

  encodeStart(start: string, ids: number[]): void {
    // With a prefix a merge may make a token that is shorter than its symbols.
    if (this.#prefix !== "" || start.length <= this.#longestToken) return;
    const symbols = this.#symbols(start, true);
    const width = this.#widths.get(symbols.at(-1) ?? -1) ?? 1;
    // Looking for a border costs about as much as `width` squared symbols.
    if (symbols.length >= width ** 2 / 4) for (const id of this.#settled(symbols, width)) ids.push(id);
  }

  /**
   * The tokens of a word that begins with these symbols, up to a border that nothing that follows can move; none where there is
   * no such border. No token that has the last of them has more than `width`.
   *
   * No merge crosses a place between two tokens of a result, so the tokens on each side are those of that side alone. And if two
   * sides are put together, a first merge across the place between them would also happen between the two tokens beside it
   * alone. The word's last place between tokens up to the end of these is one of the last `width`: if, for every such place, the tokens from
   * `border` up to it leave the token before `border` as it is, then so does the whole word.
   */
  #settled(symbols: readonly number[], width: number): readonly number[] {
    const ends = symbols.length;
    const merged = this.#mergeLong(symbols);
    const lastBorder = merged.findLastIndex((id, at) => isToken(id) && at <= ends - width);
    if (lastBorder <= 0) return [];
    let before = lastBorder - 1;
    while (merged[before]! < 0) before--;
    const isApart = new Map<number, boolean>();
    for (let end = ends - width + 1; end <= ends; end++) {
      const after = this.#mergeLong(symbols.slice(lastBorder, end));
      const next = after.findIndex((id, at) => at > 0 && isToken(id));
      const length = next < 0 ? after.length : next;
      if (!isApart.has(length)) {
        const both = this.#mergeLong(symbols.slice(before, lastBorder + length));
        const starts = both.flatMap((id, at) => (isToken(id) ? [at] : []));
        isApart.set(length, starts.length === 2 && starts[1] === lastBorder - before);
      }
      if (isApart.get(length) === false) return [];
    }
    return merged.slice(0, lastBorder).filter(isToken);
  }

  /** The symbols of a word. `isOpen`: the word continues, and only symbols that no continuation can change are returned. */
  #symbols(word: string, isOpen = false): number[] {
    const symbols: number[] = [];
    // An unknown character waits for the next known one, as in the reference.
    let unknown: number | undefined;
    let at = 0;
    for (const character of word) {
      const isFirst = at === 0;
      at += character.length;
      const token = (isFirst ? "" : this.#prefix) + character + (at === word.length && !isOpen ? this.#suffix : "");
      const id = this.#vocabulary.get(token);
      if (id !== undefined) {
        if (unknown !== undefined) symbols.push(unknown);
        unknown = undefined;
        symbols.push(id);
      } else if (this.#bytes !== undefined) {
        for (const byte of Buffer.from(token)) symbols.push(this.#bytes[byte]!);
      } else if (this.#unknown !== undefined) {
        if (unknown !== undefined && !this.#isUnknownFused) symbols.push(unknown);
        unknown = this.#unknown;
      }
    }
    if (unknown !== undefined && !isOpen) symbols.push(unknown);
    return symbols;
  }

  #mergeShort(symbols: number[]): number[] {
    for (;;) {
      let best: Merge | undefined;
      let at = -1;
      for (let i = 0; i + 1 < symbols.length; i++) {
        const merge = this.#merges.get(symbols[i]! * this.#factor + symbols[i + 1]!);
        if (merge !== undefined && (best === undefined || merge.rank < best.rank)) {
          best = merge;
          at = i;
        }
      }
      if (best === undefined) return symbols;
      symbols.splice(at, 2, best.id);
    }
  }

  /** The same with a heap of pairs and a list of neighbours: n log n. @returns each token at its first symbol, -1 at its others */
  #mergeLong(from: readonly number[]): number[] {
    const symbols = [...from];
    const count = symbols.length;
    const next = Int32Array.from({ length: count }, (_, i) => (i + 1 < count ? i + 1 : -1));
    const previous = Int32Array.from({ length: count }, (_, i) => i - 1);
    const heap = new PairHeap();
    const offer = (left: number): void => {
      const right = left < 0 ? -1 : next[left]!;
      if (right < 0) return;
      const merge = this.#merges.get(symbols[left]! * this.#factor + symbols[right]!);
      if (merge !== undefined) heap.push({ rank: merge.rank, left, leftId: symbols[left]!, rightId: symbols[right]!, id: merge.id }); // prettier-ignore
    };
    for (let i = 0; i + 1 < count; i++) offer(i);
    for (let pair = heap.pop(); pair !== undefined; pair = heap.pop()) {
      const { left } = pair;
      const right = next[left]!;
      // One of the two has become another token meanwhile.
      if (symbols[left] !== pair.leftId || right < 0 || symbols[right] !== pair.rightId) continue;
      symbols[left] = pair.id;
      symbols[right] = -1;
      const after = next[right]!;
      next[left] = after;
      if (after >= 0) previous[after] = left;
      offer(previous[left]!);
      offer(left);
    }
    return symbols;
  }
}

const isToken = (id: number): boolean => id >= 0;

/** Symbols up to which looking at all pairs is faster than a heap. */
const shortWord = 48;

interface Pair extends Merge {
  readonly left: number;
  readonly leftId: number;
  readonly rightId: number;
}

/** A binary heap: the lowest rank, and of equals the left one, comes first. */
class PairHeap {
  readonly #pairs: Pair[] = [];

  push(pair: Pair): void {
    const pairs = this.#pairs;
    let at = pairs.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(pair, pairs[parent]!)) break;
      pairs[at] = pairs[parent]!;
      at = parent;
    }
    pairs[at] = pair;
  }

  pop(): Pair | undefined {
    const pairs = this.#pairs;
    const [first] = pairs;
    const last = pairs.pop();
    if (last === undefined || pairs.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= pairs.length) break;
      if (child + 1 < pairs.length && isBefore(pairs[child + 1]!, pairs[child]!)) child++;
      if (!isBefore(pairs[child]!, last)) break;
      pairs[at] = pairs[child]!;
      at = child;
    }
    pairs[at] = last;
    return first;
  }
}

const isBefore = (a: Pair, b: Pair): boolean => a.rank < b.rank || (a.rank === b.rank && a.left < b.left);

function splitOnce(merge: string): readonly [string, string] {
  const at = merge.indexOf(" ");
  return [merge.slice(0, at), merge.slice(at + 1)];
}
