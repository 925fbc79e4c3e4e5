import { startsOf } from "./seams.ts";

/** Cuts a text into the pieces of a unigram language model (Kudo 2018, arXiv 1804.10959): token ids. */
export interface UnigramTokenizer {
  /**
   * The token ids of the likeliest segmentation; `[unknown]` for a text that has none. Of a long text that has more than `most` the last
   * ones may be left out. @default Infinity
   */
  encode(text: string, most?: number): number[];
}

interface TrieNode {
  readonly next: Map<number, TrieNode>;
  /** -1 where no piece ends. */
  id: number;
  score: number;
}

/**
 * A character before which NFKC can be cut: all but marks, the parts of Hangul syllables, halfwidth forms and the vowels of Kirat Rai,
 * which may change what stands before them.
 */
export const seams: RegExp =
  /[^\p{M}\u1100-\u11FF\u3131-\u318E\uA960-\uA97F\uD7B0-\uD7FF\uFF9E-\uFFDC\u{16D63}-\u{16D6A}]/gu;

const unknownId = 0;
const spaceMark = "\u2581";

/**
 * As Universal Sentence Encoder Lite was trained to be read: NFKC, each space and the start marked by ▁, the
 * segmentation with the highest sum of scores, runs of unknown characters as one unknown token (id 0).
 *
 * Three habits of the reference tokeniser are kept, as vectors depend on them: a character is unknown (score 0) only
 * where no piece starts; a position that no segmentation reaches counts as reached by an unknown character at score 0;
 * of equal scores the shorter last piece wins. Hugging Face's library prefers the longer one: it cuts "hccc" as h c cc, the reference as
 * h cc c.
 * @param pieces with scores, by id
 * @param reserved how many ids at the start are control tokens that no text produces
 */
export function unigramTokenizer(
  pieces: readonly (readonly [piece: string, score: number])[],
  reserved: number,
): UnigramTokenizer {
  const root = trieNode();
  const longest = pieces.reduce((most, [piece]) => Math.max(most, piece.length), 0);
  pieces.forEach(([piece, score], id) => {
    if (id < reserved) return;
    let node = root;
    for (const character of piece) {
      const code = character.codePointAt(0) as number;
      let child = node.next.get(code);
      if (child === undefined) node.next.set(code, (child = trieNode()));
      node = child;
    }
    node.id = id;
    node.score = score;
  });

  return {
    encode(text, most = Infinity) {
      for (const end of startsOf(text, most, seams)) {
        const codes = codePoints(text.slice(0, end));
        const stop = codes.length - longest;
        const { lastIds, lastLengths } = bestPieces(root, codes, stop);
        const from = lastLengths.map((length, place) => place - length);
        const ids = idsTo(settledAt(from, stop, codes.length), lastIds, lastLengths);
        if (ids.length > most) return ids;
      }
      const codes = codePoints(text);
      const { lastIds, lastLengths } = bestPieces(root, codes, codes.length);
      const ids = idsTo(codes.length, lastIds, lastLengths);
      return ids.length === 0 ? [unknownId] : ids;
    },
  };
}

function trieNode(): TrieNode {
  return { next: new Map(), id: -1, score: 0 };
}

function codePoints(text: string): Uint32Array {
  const normalized = text.normalize("NFKC");
  if (normalized === "") return new Uint32Array(0);
  const marked = spaceMark + normalized.replaceAll(" ", spaceMark);
  const codes = new Uint32Array(marked.length);
  let count = 0;
  for (let i = 0; i < marked.length; i++) {
    const code = marked.codePointAt(i) as number;
    if (code > 0xffff) i += 1;
    codes[count++] = code;
  }
  return codes.subarray(0, count);
}

/**
 * Viterbi, forwards: by the time a start is visited every piece that ends there has been weighed. Linear in the text.
 * Each end keeps the id and length of the last piece of its best segmentation, of the pieces that begin before `stop`.
 */
function bestPieces(
  root: TrieNode,
  codes: Uint32Array,
  stop: number,
): { readonly lastIds: Int32Array; readonly lastLengths: Int32Array } {
  const best = new Float64Array(codes.length + 1);
  const lastIds = new Int32Array(codes.length + 1);
  const lastLengths = new Int32Array(codes.length + 1).fill(1);
  const offer = (end: number, score: number, id: number, length: number): void => {
    // 0 means "not reached"; starts come in rising order, so >= prefers the shorter of equals.
    if (best[end] !== 0 && score < (best[end] as number)) return;
    best[end] = score;
    lastIds[end] = id;
    lastLengths[end] = length;
  };
  for (let start = 0; start < stop; start++) {
    const score = best[start] as number;
    let node = root.next.get(codes[start] as number);
    let matched = false;
    for (let end = start + 1; node !== undefined; end++) {
      if (node.id >= 0) {
        matched = true;
        offer(end, score + node.score, node.id, end - start);
      }
      node = end < codes.length ? node.next.get(codes[end] as number) : undefined;
    }
    if (!matched) offer(start + 1, score, unknownId, 1);
  }
  return { lastIds, lastLengths };
}

/** Backwards from an end. Unknown characters in a row are one token. */
function idsTo(last: number, lastIds: Int32Array, lastLengths: Int32Array): number[] {
  const ids: number[] = [];
  let wasUnknown = false;
  for (let end = last; end > 0; end -= lastLengths[end] as number) {
    const id = lastIds[end] as number;
    if (!(wasUnknown && id === unknownId)) ids.push(id);
    wasUnknown = id === unknownId;
  }
  return ids.reverse();
}

/** The last place that the best ways to all places still open have in common: what lies before it stays as it is. */
function settledAt(from: Int32Array, start: number, reached: number): number {
  let common = start;
  for (let end = start + 1; end <= reached; end++) {
    let at = end;
    while (at !== common) {
      if (at > common) at = from[at]!;
      else common = from[common]!;
    }
  }
  return common;
}
