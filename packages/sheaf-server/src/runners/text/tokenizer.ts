import { Tokenizer, type Encoding as LibraryEncoding } from "tokenizers";
import { hasSeams, mayCrossSeam, mostTextChars, startsOf } from "./seams.ts";

export interface TokenizerOptions {
  /** Lowercases texts before anything else. @default false */
  readonly isLowercased?: boolean;
  /** The side on which long texts are truncated. @default "right" */
  readonly truncationSide?: Side;
}

type Side = "left" | "right";

/** A text, or with `query` a pair, of which only the text is truncated. */
export interface TextSequence {
  readonly text: string;
  readonly query?: string | undefined;
  readonly side?: Side | undefined;
}

export interface Encoding {
  readonly ids: readonly number[];
  /** 1 for tokens of a second text, if the model has token types. */
  readonly types: readonly number[];
  readonly truncated: boolean;
  /** Token count of a truncated text, special tokens included; a lower bound unless `isReadWhole`. */
  readonly textTokens?: number;
  readonly isReadWhole?: boolean;
}

/** A text to tokenise: more than `most` tokens if it has more, but not necessarily all. */
interface Wanted {
  readonly text: string;
  readonly most: number;
  readonly side: Side;
}

/** A text's own tokens: all of them if `isReadWhole`, else the first ones. */
interface Found {
  readonly ids: readonly number[];
  readonly isReadWhole: boolean;
}

/** A special token, or a placeholder for a text. */
type Piece = { readonly id: number; readonly type: number } | { readonly text: number; readonly type: number };

type Template = readonly Piece[];
type Templates = Readonly<Record<"single" | "pair", Template>>;

/**
 * The tokenizer of a `tokenizer.json`, as Hugging Face's library reads it on threads of its own. A long text that is cut at its end is
 * read in longer and longer starts, until there are enough tokens.
 */
export class TextTokenizer {
  readonly #library: Tokenizer;
  readonly #side: Side;
  readonly #hasSeams: boolean;
  /** Added tokens, as written and normalized: they match before the text is split. */
  readonly #added: readonly string[];
  readonly #longestAdded: number;
  readonly #templates: Templates;

  private constructor(library: Tokenizer, file: TokenizerFile, side: Side, templates: Templates) {
    this.#library = library;
    this.#side = side;
    this.#hasSeams = hasSeams(file);
    this.#templates = templates;
    const added = (file.added_tokens ?? []).map(({ content }) => content);
    this.#added = [...new Set([...added, ...added.map((content) => this.#normalized(content))])].filter(mayCrossSeam);
    this.#longestAdded = this.#added.reduce((most, { length }) => Math.max(most, length), 0);
  }

  /** @throws {Error} a part of the file that the library does not know, or dropout, which makes tokens of chance. */
  static async open(file: TokenizerFile, options: TokenizerOptions = {}): Promise<TextTokenizer> {
    if (Number(file.model?.["dropout"] ?? 0) > 0) throw new Error("dropout is not served: set it to null");
    const own = file.normalizer ?? undefined;
    const normalizers = [...(options.isLowercased === true ? [{ type: "Lowercase" }] : []), ...(own ? [own] : [])];
    const read = { ...file, truncation: null, padding: null, normalizer: { type: "Sequence", normalizers } };
    const library = Tokenizer.fromString(JSON.stringify(read));
    const model = { type: "WordLevel", vocab: { a: 0 }, unk_token: "a" };
    const parts = { normalizer: null, pre_tokenizer: null, added_tokens: [] };
    // Every text is one token.
    const shown = Tokenizer.fromString(JSON.stringify({ ...read, ...parts, model }));
    const single = templateOf(await shown.encode("a"));
    const pair = templateOf(await shown.encode("a", "a"));
    return new TextTokenizer(library, read, options.truncationSide ?? "right", { single, pair });
  }

  /** Number of special tokens around a text or pair. */
  specialTokens(isPair: boolean): number {
    return this.#templates[isPair ? "pair" : "single"].filter((piece) => "id" in piece).length;
  }

  /** How many tokens each prefix of a text takes, with the special tokens before it. */
  async leadingTokens(starts: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const before = this.#templates.single.findIndex((piece) => "text" in piece);
    const found = await this.#readOnce(starts, Infinity);
    return new Map([...found].map(([start, own]) => [start, before + (own instanceof Error ? 0 : own.ids.length)]));
  }

  /** The texts with their special tokens, truncated to the limit. A RangeError means that the query is too long. */
  async encode(sequences: readonly TextSequence[], maxTokens: number): Promise<(Encoding | Error)[]> {
    const { single, pair } = this.#templates;
    const room = Math.max(0, maxTokens - this.specialTokens(true));
    const queries = await this.#readOnce(sequences.flatMap(({ query }) => query ?? []), room); // prettier-ignore
    const wanted = sequences.map(({ text, query, side = this.#side }): Wanted | Error => {
      if (query === undefined) return { text, side, most: Math.max(0, maxTokens - this.specialTokens(false)) };
      const own = queries.get(query)!;
      if (own instanceof Error) return own;
      const most = room - own.ids.length;
      if (most >= 1) return { text, side, most };
      return new RangeError(`has more than ${Math.max(0, room - 1)} tokens, all that ${maxTokens} tokens leave beside a text`); // prettier-ignore
    });
    const found = await this.#read(wanted);
    return found.map((own, i) => {
      if (own instanceof Error) return own;
      const { most, side } = wanted[i] as Wanted;
      const { query } = sequences[i]!;
      const isCut = own.ids.length > most;
      const kept = !isCut ? own.ids : side === "left" ? own.ids.slice(own.ids.length - most) : own.ids.slice(0, most);
      const filled =
        query === undefined ? filledWith(single, [kept]) : filledWith(pair, [(queries.get(query) as Found).ids, kept]);
      if (!isCut) return { ...filled, truncated: false };
      const textTokens = filled.ids.length - most + own.ids.length;
      return { ...filled, truncated: true, textTokens, isReadWhole: own.isReadWhole };
    });
  }

  /** Each of the texts once. */
  async #readOnce(texts: readonly string[], most: number): Promise<ReadonlyMap<string, Found | Error>> {
    const all = [...new Set(texts)];
    const found = await this.#read(all.map((text) => ({ text, most, side: "right" })));
    return new Map(all.map((text, i) => [text, found[i]!]));
  }

  async #read(texts: readonly (Wanted | Error)[]): Promise<(Found | Error)[]> {
    const found: (Found | Error)[] = [];
    let open = texts.flatMap((wanted, place) => {
      const isRead = !(wanted instanceof Error) && wanted.text.length <= mostTextChars;
      if (isRead) return [{ ...wanted, place, ends: this.#endsOf(wanted) }];
      found[place] =
        wanted instanceof Error ? wanted : new Error(`it has more than ${mostTextChars} characters, with its prompt`);
      return [];
    });
    while (open.length > 0) {
      const parts = open.map((own) => ({ ...own, end: own.ends.next().value }));
      const encodings = await this.#encode(parts.map(({ text, end }) => text.slice(0, end)));
      open = parts.filter(({ place, most, end }, i) => {
        const encoding = encodings[i]!;
        // The last word of a prefix may be incomplete.
        if (encoding instanceof Error) found[place] = encoding;
        else found[place] = { ids: end === undefined ? encoding.getIds() : certainIds(encoding), isReadWhole: end === undefined }; // prettier-ignore
        return end !== undefined && (encoding instanceof Error || (found[place] as Found).ids.length <= most);
      });
    }
    return found;
  }

  /** Without special tokens. One unreadable text fails the library's whole batch. */
  async #encode(texts: readonly string[]): Promise<(LibraryEncoding | Error)[]> {
    const options = { addSpecialTokens: false };
    return this.#library
      .encodeBatch([...texts], options)
      .catch(() => Promise.all(texts.map((text) => this.#library.encode(text, null, options).catch((error: unknown) => error as Error)))); // prettier-ignore
  }

  *#endsOf({ text, most, side }: Wanted): Generator<number, undefined> {
    if (side === "left" || !this.#hasSeams) return undefined;
    for (const end of startsOf(text, most)) if (!this.#hasTokenAt(text, end)) yield end;
    return undefined;
  }

  /** Whether an added token may span a seam, or end at one and require a word boundary there. */
  #hasTokenAt(text: string, seam: number): boolean {
    if (this.#longestAdded === 0) return false;
    const width = 4 * this.#longestAdded;
    const around = text.slice(Math.max(0, seam - width), seam + width);
    const normalized = this.#normalized(around);
    return this.#added.some((token) => around.includes(token) || normalized.includes(token));
  }

  #normalized(text: string): string {
    return this.#library.getNormalizer()?.normalizeString(text) ?? text;
  }
}

/** The fields of `tokenizer.json` that are read here. */
export interface TokenizerFile extends Readonly<Record<string, unknown>> {
  readonly added_tokens?: readonly { readonly content: string }[];
  readonly model?: Readonly<Record<string, unknown>>;
}

/** The tokens of a prefix that no continuation can change: all but those of its last word. */
function certainIds(encoding: LibraryEncoding): number[] {
  const words = encoding.getWordIds();
  return encoding.getIds().slice(0, Math.max(0, words.indexOf(words.at(-1))));
}

function templateOf(encoding: LibraryEncoding): Template {
  const types = encoding.getTypeIds();
  const texts = encoding.getSequenceIds();
  return encoding.getIds().flatMap((id, i): Piece[] => {
    const text = texts[i] ?? undefined;
    if (text === undefined) return [{ id, type: types[i]! }];
    return texts[i - 1] === text ? [] : [{ text, type: types[i]! }];
  });
}

function filledWith(template: Template, texts: readonly (readonly number[])[]): Pick<Encoding, "ids" | "types"> {
  const ids: number[] = [];
  const types: number[] = [];
  for (const piece of template) {
    const own = "id" in piece ? [piece.id] : (texts[piece.text] ?? []);
    for (const id of own) {
      ids.push(id);
      types.push(piece.type);
    }
  }
  return { ids, types };
}
