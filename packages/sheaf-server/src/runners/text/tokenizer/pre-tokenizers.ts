import { patternOf, punctuation, readsNoSeam, whiteSpace, wordCharacter } from "./patterns.ts";

/** Cuts a text into words, lazily. `isStart` says whether it begins the whole text. */
export type PreTokenizer = (text: string, isStart: boolean) => Iterable<string>;

type Config = Readonly<Record<string, unknown>>;

interface Made {
  readonly cut: PreTokenizer;
  /** Whether the words of a text's start are those of the whole text, but for the last one; see `startsOf`. */
  readonly isStable: boolean;
}

/** @throws {Error} a type that is not served. */
export function preTokenizerOf(config: unknown): Made {
  if (config === null || config === undefined) return { cut: whole, isStable: true };
  const { type, ...own } = config as Config;
  const make = Object.hasOwn(preTokenizers, String(type)) ? preTokenizers[String(type)] : undefined;
  if (make === undefined) throw new Error(`the pre-tokenizer ${JSON.stringify(type)} is not served`);
  return make(own);
}

const whole: PreTokenizer = (text) => (text === "" ? [] : [text]);

/** By type. */
export const preTokenizers: Readonly<Record<string, (config: Config) => Made>> = {
  Sequence: ({ pretokenizers: list }) => {
    const all = (list as unknown[]).map(preTokenizerOf);
    const isStable = all.every((one) => one.isStable);
    const cut = all.reduce<PreTokenizer>(
      (before, { cut: after }) =>
        function* (text, isStart) {
          let isFirst = true;
          for (const word of before(text, isStart)) {
            yield* after(word, isFirst && isStart && text.startsWith(word));
            isFirst = false;
          }
        },
      whole,
    );
    return { cut, isStable };
  },
  BertPreTokenizer: () => bySpaces(`[^${punctuation}${whiteSpace}]+|${punctuation}`),
  Whitespace: () => bySpaces(`${wordCharacter}+|[^${wordCharacter.slice(1, -1)}${whiteSpace}]+`),
  WhitespaceSplit: () => bySpaces("\\P{White_Space}+"),
  ByteLevel: ({ add_prefix_space: hasPrefix = true, use_regex: usesRegex = true }) => {
    const words = usesRegex === true ? (text: string) => matches(text, byteLevelWords) : whole;
    return {
      *cut(text, isStart) {
        const prefixed = hasPrefix === true && !text.startsWith(" ") ? ` ${text}` : text;
        for (const word of words(prefixed, isStart)) yield byteCharacters(word);
      },
      isStable: true,
    };
  },
  Metaspace: ({ replacement = "\u2581", prepend_scheme, add_prefix_space, split = true }) => {
    const mark = replacement as string;
    const scheme = prepend_scheme ?? (add_prefix_space === false ? "never" : "always");
    return {
      *cut(text, isStart) {
        const marked = text.replaceAll(" ", mark);
        const isPrefixed = scheme === "always" || (scheme === "first" && isStart);
        const all = isPrefixed && !marked.startsWith(mark) ? mark + marked : marked;
        if (split !== true) return yield* whole(all, isStart);
        let start = 0;
        for (let at = all.indexOf(mark, 1); at >= 0; at = all.indexOf(mark, at + 1)) {
          yield all.slice(start, at);
          start = at;
        }
        if (start < all.length) yield all.slice(start);
      },
      isStable: true,
    };
  },
  Split: ({ pattern, behavior, invert }) => {
    const found = patternOf(pattern);
    const { Regex: source = "" } = pattern as { readonly Regex?: string };
    const isStable = readsNoSeam(pattern) || stablePatterns.has(source);
    return { cut: splitting(found, behavior, invert === true), isStable };
  },
  Punctuation: ({ behavior = "isolated" }) => splitter(punctuation, behavior),
  Digits: ({ individual_digits: isEach }) => splitter("\\p{N}", isEach === true ? "isolated" : "contiguous"),
  CharDelimiterSplit: ({ delimiter }) => ({
    cut: splitting(patternOf({ String: delimiter }), "removed", false),
    isStable: true,
  }),
};

/** The words of GPT-2. */
const gpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const byteLevelWords = patternOf({ Regex: gpt2 });

/** Known patterns whose matches depend on at most a character behind them. */
const stablePatterns: ReadonlySet<string> = new Set([
  gpt2,
  ...["\\p{N}", "\\p{N}{1,3}"].map(
    (digits) =>
      `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`,
  ),
]);

function* matches(text: string, pattern: RegExp): Iterable<string> {
  const own = new RegExp(pattern);
  for (let match = own.exec(text); match !== null; match = own.exec(text)) yield match[0];
}

function bySpaces(source: string): Made {
  const pattern = new RegExp(source, "gv");
  return { cut: (text) => matches(text, pattern), isStable: true };
}

function splitter(source: string, behavior: unknown): Made {
  return { cut: splitting(new RegExp(source, "gv"), behavior, false), isStable: true };
}

/** @throws {Error} a behaviour that is not known. */
function splitting(pattern: RegExp, behavior: unknown, isInverted: boolean): PreTokenizer {
  const name = String(behavior).toLowerCase().replaceAll("_", "");
  const join = Object.hasOwn(behaviors, name) ? behaviors[name] : undefined;
  if (join === undefined) throw new Error(`the behaviour ${JSON.stringify(behavior)} is not served`);
  return (text) => join(parts(text, pattern, isInverted));
}

interface Part {
  readonly text: string;
  readonly isDelimiter: boolean;
}

/** Matches, and what lies between them. */
function* parts(text: string, pattern: RegExp, isInverted: boolean): Iterable<Part> {
  const own = new RegExp(pattern);
  let start = 0;
  for (let match = own.exec(text); match !== null; match = own.exec(text)) {
    if (match[0] === "") {
      own.lastIndex += (text.codePointAt(own.lastIndex) ?? 0) > 0xffff ? 2 : 1;
      continue;
    }
    if (match.index > start) yield { text: text.slice(start, match.index), isDelimiter: isInverted };
    yield { text: match[0], isDelimiter: !isInverted };
    start = match.index + match[0].length;
  }
  if (start < text.length) yield { text: text.slice(start), isDelimiter: isInverted };
}

/** What becomes of the delimiters, by name. */
const behaviors: Readonly<Record<string, (all: Iterable<Part>) => Iterable<string>>> = {
  *removed(all) {
    for (const { text, isDelimiter } of all) if (!isDelimiter) yield text;
  },
  *isolated(all) {
    for (const { text } of all) yield text;
  },
  *contiguous(all) {
    let open: Part | undefined;
    for (const part of all) {
      if (open !== undefined && open.isDelimiter === part.isDelimiter) open = { ...open, text: open.text + part.text };
      else {
        if (open !== undefined) yield open.text;
        open = part;
      }
    }
    if (open !== undefined) yield open.text;
  },
  *mergedwithprevious(all) {
    let open: Part | undefined;
    for (const part of all) {
      if (part.isDelimiter && open !== undefined && !open.isDelimiter) {
        yield open.text + part.text;
        open = undefined;
      } else {
        if (open !== undefined) yield open.text;
        open = part;
      }
    }
    if (open !== undefined) yield open.text;
  },
  *mergedwithnext(all) {
    let open: Part | undefined;
    for (const part of all) {
      if (!part.isDelimiter && open?.isDelimiter === true) {
        yield open.text + part.text;
        open = undefined;
      } else {
        if (open !== undefined) yield open.text;
        open = part;
      }
    }
    if (open !== undefined) yield open.text;
  },
};

/** GPT-2's characters of bytes: printable bytes stand for themselves, the others for U+0100 onwards. */
const byteAlphabet: readonly string[] = (() => {
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const isSeen = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCharCode(isSeen ? byte : 256 + others++);
  });
})();

const isPlain = /^ ?[!-~]*$/u;

function byteCharacters(word: string): string {
  if (isPlain.test(word)) return word.startsWith(" ") ? `\u0120${word.slice(1)}` : word;
  let result = "";
  for (const byte of Buffer.from(word)) result += byteAlphabet[byte];
  return result;
}
