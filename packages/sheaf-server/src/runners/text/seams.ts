/** The most characters of a text, with its prompt. The tokenizer's regular expressions end the process at about ten times as many. */
export const mostTextChars = 1_000_000;

/** Letters and digits: no grapheme, composed character or contraction spans two of them. */
const plain =
  "A-Za-z0-9\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u024F\\u1E00-\\u1EFF\\u0391-\\u03A9\\u03B1-\\u03C9\\u0400-\\u0481\\u048A-\\u052F\\u05D0-\\u05EA" +
  "\\u0621-\\u063F\\u0641-\\u064A\\u3041-\\u3096\\u30A1-\\u30FA\\u3400-\\u4DBF\\u4E00-\\u9FFF\\uAC00-\\uD7A3";
const plainSeams = new RegExp(`(?<=[${plain}]{2})[${plain}]`, "gu");
const overSeam = new RegExp(`[${plain}]{2}`, "u");

/**
 * Ends of longer and longer starts of a long text whose first `most` tokens are wanted: for 8 characters a token, then for four times as
 * many, up to half of it. No normalizer reads across such an end, a seam, and no word but the last. `seams` finds the character after
 * one. @default the third of three plain letters or digits
 */
export function* startsOf(text: string, most: number, seams: RegExp = plainSeams): Iterable<number> {
  const first = Math.max(256, 8 * most);
  const seam = new RegExp(seams);
  for (let count = first; 2 * count < text.length; count *= 4) {
    seam.lastIndex = count;
    const match = seam.exec(text);
    if (match === null) return;
    yield match.index;
  }
}

type Part = Readonly<Record<string, unknown>>;

/** Types that look at most one character past the end of a word, and never across two plain letters. */
// prettier-ignore
const seamTypes: ReadonlySet<unknown> = new Set([
  "BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Prepend", "Nmt", "Precompiled",
  "BertPreTokenizer", "Whitespace", "WhitespaceSplit", "ByteLevel", "Metaspace", "Punctuation", "Digits", "CharDelimiterSplit",
]);

/** Known patterns that look at most one character ahead. */
const seamPatterns: ReadonlySet<unknown> = new Set([
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
  ...["\\p{N}", "\\p{N}{1,3}"].map(
    (digits) =>
      `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`,
  ),
]);

/** Whether a `tokenizer.json` splits the start of a text the same whatever follows; see `startsOf`. */
export function hasSeams({ normalizer, pre_tokenizer: words }: Part): boolean {
  // Without a pre-tokenizer a text is one word.
  return keepsSeams(normalizer ?? { type: "Strip" }) && keepsSeams(words ?? {});
}

function keepsSeams(part: unknown): boolean {
  const { type, normalizers, pretokenizers, pattern } = part as Part;
  if (type === "Sequence") return ((normalizers ?? pretokenizers) as unknown[]).every(keepsSeams);
  if (type !== "Replace" && type !== "Split") return seamTypes.has(type);
  const { String: text, Regex: source } = pattern as { readonly String?: string; readonly Regex?: string };
  if (text !== undefined) return !mayCrossSeam(text);
  return (type === "Split" && seamPatterns.has(source)) || readsNoLetters.test(source ?? "");
}

/** A pattern of spaces and signs. */
const readsNoLetters = /^(?:\\[snrt]|[^\p{L}\p{N}\\.[\](){}|^$?*+]|[+*]|\{\d+,?\d*\})+$/u;

export const mayCrossSeam = (text: string): boolean => overSeam.test(text);
