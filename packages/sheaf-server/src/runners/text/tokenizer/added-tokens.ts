import type { Normalizer } from "./normalizers.ts";
import { readsNoSeam, whiteSpace, withoutSpacesAtEnd, wordCharacter } from "./patterns.ts";

/** A stretch of a text, or a token that was found in it. */
export type Section = { readonly text: string } | { readonly id: number };

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly single_word?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
  readonly normalized?: boolean;
  readonly special?: boolean;
}

/** Cuts a text at the tokens that stand apart from the vocabulary, such as [MASK]: those of a set, the longest first. */
export type TokenFinder = (text: string) => readonly Section[];

export interface TokenFinders {
  /** In the text as written. */
  readonly raw: TokenFinder;
  /** In the normalized text. */
  readonly normalized: TokenFinder;
  /** Of the longest token of a normalized text that may go over a seam; 0 without one. See `startsOf`. */
  readonly longestOverSeam: number;
}

/** Finds added tokens, some in the text as written, the others in the normalised text. */
export function tokenFinders(tokens: unknown, normalize: Normalizer): TokenFinders {
  const all = ((tokens ?? []) as readonly AddedToken[]).filter(({ content }) => content !== "");
  const isNormalized = ({ normalized, special }: AddedToken): boolean => normalized ?? special !== true;
  const normalized = all.filter(isNormalized).map((token) => [normalize(token.content), token] as const);
  return {
    raw: finderOf(all.filter((token) => !isNormalized(token)).map((token) => [token.content, token])),
    normalized: finderOf(normalized),
    longestOverSeam: normalized.reduce(
      (most, [text]) => (readsNoSeam({ String: text }) ? most : Math.max(most, text.length)),
      0,
    ),
  };
}

const endsWithWord = new RegExp(`${wordCharacter}$`, "u");
const startsWithWord = new RegExp(`^${wordCharacter}`, "u");
const spacesFrom = new RegExp(`${whiteSpace}*`, "uy");

function finderOf(tokens: readonly (readonly [text: string, token: AddedToken])[]): TokenFinder {
  const byText = new Map(tokens.filter(([text]) => text !== "").map(([text, token]) => [text, token]));
  if (byText.size === 0) return (text) => (text === "" ? [] : [{ text }]);
  const longestFirst = [...byText.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")).join("|"), "gu");
  return (text) => {
    const sections: Section[] = [];
    let from = 0;
    for (const match of text.matchAll(pattern)) {
      const token = byText.get(match[0])!;
      let start = match.index;
      let end = start + match[0].length;
      if (token.single_word === true) {
        const isPart = endsWithWord.test(text.slice(Math.max(0, start - 2), start)) || startsWithWord.test(text.slice(end, end + 2)); // prettier-ignore
        if (isPart) continue;
      }
      if (token.lstrip === true) start = Math.max(from, withoutSpacesAtEnd(text, start));
      if (token.rstrip === true) {
        spacesFrom.lastIndex = end;
        end += spacesFrom.exec(text)![0].length;
      }
      if (start > from) sections.push({ text: text.slice(from, start) });
      sections.push({ id: token.id });
      from = end;
    }
    if (from < text.length) sections.push({ text: text.slice(from) });
    return sections;
  };
}
