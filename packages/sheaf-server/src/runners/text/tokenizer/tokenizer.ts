import { tokenFinders, type TokenFinder } from "./added-tokens.ts";
import { wordModelOf } from "./models.ts";
import { keepsStarts, lowercase, normalizerOf, type Normalizer } from "./normalizers.ts";
import { startsOf } from "./patterns.ts";
import { templatesOf, type Piece, type Templates } from "./post-processors.ts";
import { preTokenizerOf, type PreTokenizer } from "./pre-tokenizers.ts";
import type { WordModel } from "./word-model.ts";

export interface TokenizerOptions {
  /** Lowercases texts before anything else. @default false */
  readonly isLowercased?: boolean;
  /** The side on which a text is cut that is too long. @default "right" */
  readonly truncationSide?: Side;
}

type Side = "left" | "right";

export interface Encoding {
  readonly ids: readonly number[];
  /** 1 for the tokens of a second text, where the model tells them apart. */
  readonly types: readonly number[];
  readonly truncated: boolean;
  /** Token count of a truncated text, special tokens included; a lower bound unless `isReadWhole`. */
  readonly textTokens?: number;
  readonly isReadWhole?: boolean;
}

/** A text's own tokens: all of them if `isReadWhole`, else the first ones. */
interface Found {
  readonly ids: readonly number[];
  readonly isReadWhole: boolean;
}

/**
 * The tokenizer of a `tokenizer.json` of Hugging Face: the same tokens as their library gives.
 * @throws {Error} naming a part of the file that is not served.
 */
export class TextTokenizer {
  readonly #normalize: Normalizer;
  readonly #raw: TokenFinder;
  readonly #normalized: TokenFinder;
  readonly #longestOverSeam: number;
  readonly #cut: PreTokenizer;
  /** Whether the first tokens of a long text may be those of its start. */
  readonly #isStable: boolean;
  readonly #model: WordModel;
  readonly #templates: Templates;
  readonly #side: Side;
  #query: { readonly text: string; readonly most: number; readonly ids: readonly number[] } | undefined;

  constructor(file: Readonly<Record<string, unknown>>, options: TokenizerOptions = {}) {
    const normalize = normalizerOf(file["normalizer"]);
    this.#normalize = options.isLowercased === true ? (text) => normalize(lowercase(text)) : normalize;
    const finders = tokenFinders(file["added_tokens"], this.#normalize);
    this.#raw = finders.raw;
    this.#normalized = finders.normalized;
    this.#longestOverSeam = finders.longestOverSeam;
    const { cut, isStable } = preTokenizerOf(file["pre_tokenizer"]);
    this.#cut = cut;
    this.#isStable = isStable && keepsStarts(file["normalizer"]);
    this.#model = wordModelOf(file["model"]);
    this.#templates = templatesOf(file["post_processor"]);
    this.#side = options.truncationSide ?? "right";
  }

  /** The tokens that every text, or every pair, has beside its own. */
  specialTokens(isPair: boolean): number {
    const template = isPair ? this.#templates.pair : this.#templates.single;
    return template.reduce((sum, piece) => sum + ("ids" in piece ? piece.ids.length : 0), 0);
  }

  /** The tokens of a text that begins so, up to where the rest of it begins. */
  leadingTokens(start: string): number {
    const { single } = this.#templates;
    const before = single.slice(
      0,
      single.findIndex((piece) => "text" in piece),
    );
    const special = before.reduce((sum, piece) => sum + ("ids" in piece ? piece.ids.length : 0), 0);
    return special + this.#tokens(start, Infinity, "right").ids.length;
  }

  /** A text with its special tokens; its own are cut to the limit, at its end or its start. */
  encode(text: string, maxTokens: number, side: Side = this.#side): Encoding {
    const special = this.specialTokens(false);
    const most = Math.max(0, maxTokens - special);
    const own = this.#tokens(text, most, side);
    const kept = keptOf(own.ids, most, side);
    return { ...filled(this.#templates.single, [kept]), ...cutOf(own, most, special) };
  }

  /**
   * Two texts; only the second is cut.
   * @throws {RangeError} the first leaves no room for a token of the second; the message goes on after its name.
   */
  encodePair(first: string, second: string, maxTokens: number): Encoding {
    const special = this.specialTokens(true);
    const room = maxTokens - special;
    const query = this.#queryTokens(first, Math.max(0, room));
    const most = room - query.length;
    if (most < 1) throw new RangeError(`has more than ${Math.max(0, room - 1)} tokens, all that ${maxTokens} tokens leave beside a text`); // prettier-ignore
    const own = this.#tokens(second, most, this.#side);
    const kept = keptOf(own.ids, most, this.#side);
    return { ...filled(this.#templates.pair, [query, kept]), ...cutOf(own, most, special + query.length) };
  }

  /** The first text's tokens; a request ranks many texts by one query, which is read once. */
  #queryTokens(text: string, most: number): readonly number[] {
    if (this.#query?.text !== text || this.#query.most !== most)
      this.#query = { text, most, ids: this.#tokens(text, most, "right").ids };
    return this.#query.ids;
  }

  /** A text's own tokens; more than `most` where it has more, but not all of them. */
  #tokens(text: string, most: number, side: Side): Found {
    const ids: number[] = [];
    const limit = side === "left" ? Infinity : most;
    let isStart = true;
    for (const section of this.#raw(text)) {
      if (ids.length > limit) return { ids, isReadWhole: false };
      if ("id" in section) ids.push(section.id);
      else if (!this.#addSection(section.text, isStart, ids, limit)) return { ids, isReadWhole: false };
      isStart = false;
    }
    return { ids, isReadWhole: true };
  }

  /** @returns whether it was read to its end */
  #addSection(text: string, isStart: boolean, ids: number[], limit: number): boolean {
    for (const end of startsOf(text, limit - ids.length)) {
      if (!this.#isStable || this.#hasTokenOver(text, end)) continue;
      const found: number[] = [];
      this.#addWords(text.slice(0, end), isStart, found, Infinity, true);
      if (ids.length + found.length <= limit) continue;
      for (const id of found) ids.push(id);
      return false;
    }
    return this.#addWords(text, isStart, ids, limit, false);
  }

  /** Whether an added token of the normalized text may go over a seam. */
  #hasTokenOver(text: string, seam: number): boolean {
    if (this.#longestOverSeam === 0) return false;
    const width = 4 * this.#longestOverSeam;
    const from = Math.max(0, seam - width);
    // One that ends at the seam may want a word to end there.
    return [seam, seam + width].some((to) =>
      this.#normalized(this.#normalize(text.slice(from, to))).some((section) => "id" in section),
    );
  }

  /** Appends the tokens of a text. `isOpen`: the text continues, and only tokens that no continuation can change are appended. @returns whether it was read to its end */
  #addWords(text: string, isStart: boolean, ids: number[], limit: number, isOpen: boolean): boolean {
    let isFirst = isStart;
    const parts = this.#normalized(this.#normalize(text));
    for (const part of parts) {
      if (ids.length > limit) return false;
      if ("id" in part) ids.push(part.id);
      else {
        let last: string | undefined;
        for (const word of this.#cut(part.text, isFirst)) {
          if (last !== undefined) this.#model.encode(last, ids);
          if (ids.length > limit) return false;
          last = word;
        }
        if (last !== undefined && isOpen && part === parts.at(-1)) this.#model.encodeStart?.(last, ids);
        else if (last !== undefined) this.#model.encode(last, ids);
      }
      isFirst = false;
    }
    return true;
  }
}

/** Whether a text was cut, and how many tokens it has beside the `others` of its sequence. */
function cutOf(
  { ids, isReadWhole }: Found,
  most: number,
  others: number,
): Pick<Encoding, "truncated" | "textTokens" | "isReadWhole"> {
  if (ids.length <= most) return { truncated: false };
  return { truncated: true, textTokens: others + ids.length, isReadWhole };
}

function keptOf(ids: readonly number[], most: number, side: Side): readonly number[] {
  if (ids.length <= most) return ids;
  return side === "left" ? ids.slice(ids.length - most) : ids.slice(0, most);
}

function filled(template: readonly Piece[], texts: readonly (readonly number[])[]): Pick<Encoding, "ids" | "types"> {
  const ids: number[] = [];
  const types: number[] = [];
  for (const piece of template) {
    const own = "ids" in piece ? piece.ids : (texts[piece.text] ?? []);
    for (const id of own) {
      ids.push(id);
      types.push(piece.type);
    }
  }
  return { ids, types };
}
