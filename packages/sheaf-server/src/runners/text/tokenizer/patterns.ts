/** White space as Unicode has it: unlike `\s` of JavaScript with U+0085 and without U+FEFF. */
export const whiteSpace = "\\p{White_Space}";

const isSpace = new RegExp(whiteSpace, "u");

/** The length of the text before `end` without the white space at its end. An expression would look at each run of spaces once for each of them. */
export function withoutSpacesAtEnd(text: string, end: number = text.length): number {
  let length = end;
  while (length > 0 && isSpace.test(text[length - 1]!)) length--;
  return length;
}

const wordInClass = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u200C\\u200D";
/** A character of a word, as Rust's regular expressions have it. */
export const wordCharacter: string = `[${wordInClass}]`;

/** Punctuation that is newer than the tables of Hugging Face's library. */
const newPunctuation =
  "\\u{61d}\\u{9fd}\\u{a76}\\u{c77}\\u{c84}\\u{1b4e}-\\u{1b4f}\\u{1b7d}-\\u{1b7f}\\u{2e43}-\\u{2e4f}\\u{2e52}-\\u{2e5d}\\u{10d6e}\\u{10ead}\\u{10ed0}" +
  "\\u{10f55}-\\u{10f59}\\u{10f86}-\\u{10f89}\\u{111c9}\\u{113d4}-\\u{113d5}\\u{113d7}-\\u{113d8}\\u{1144b}-\\u{1144f}\\u{1145a}-\\u{1145b}\\u{1145d}" +
  "\\u{11660}-\\u{1166c}\\u{116b9}\\u{1183b}\\u{11944}-\\u{11946}\\u{119e2}\\u{11a3f}-\\u{11a46}\\u{11a9a}-\\u{11a9c}\\u{11a9e}-\\u{11aa2}\\u{11b00}-\\u{11b09}" +
  "\\u{11be1}\\u{11c41}-\\u{11c45}\\u{11c70}-\\u{11c71}\\u{11ef7}-\\u{11ef8}\\u{11f43}-\\u{11f4f}\\u{11fff}\\u{12ff1}-\\u{12ff2}\\u{16d6d}-\\u{16d6f}" +
  "\\u{16e97}-\\u{16e9a}\\u{16fe2}\\u{1e5ff}\\u{1e95e}-\\u{1e95f}";

/** ASCII's and Unicode's punctuation, as that library has it; for expressions with the flag `v`. */
export const punctuation: string = `[[\\p{P}\\u166D\\u0021-\\u002F\\u003A-\\u0040\\u005B-\\u0060\\u007B-\\u007E]--[${newPunctuation}]]`;

const escapes: Readonly<Record<string, readonly [inClass: string, alone: string]>> = {
  s: [whiteSpace, whiteSpace],
  S: ["\\P{White_Space}", "\\P{White_Space}"],
  d: ["\\p{Nd}", "\\p{Nd}"],
  D: ["\\P{Nd}", "\\P{Nd}"],
  w: [wordInClass, wordCharacter],
};

/** Letters that Unicode folds to an ASCII letter. */
const otherCases: Readonly<Record<string, string>> = { s: "\u017F", k: "\u212A" };

/** A pattern of `tokenizer.json`: a text, or a regular expression of Oniguruma. @throws {Error} it is not served. */
export function patternOf(pattern: unknown): RegExp {
  const { String: text, Regex: source } = (pattern ?? {}) as { readonly String?: unknown; readonly Regex?: unknown };
  if (typeof text === "string") return new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&"), "gu");
  if (typeof source !== "string") throw new Error(`the pattern ${JSON.stringify(pattern)} is not served`);
  try {
    return new RegExp(translated(source), "gu");
  } catch (error) {
    throw new Error(`the pattern ${JSON.stringify(source)} is not served: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Letters and digits between two of which no grapheme, composed character or contraction reads. */
const plain =
  "A-Za-z0-9\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u024F\\u1E00-\\u1EFF\\u0391-\\u03A9\\u03B1-\\u03C9\\u0400-\\u0481\\u048A-\\u052F\\u05D0-\\u05EA" +
  "\\u0621-\\u063F\\u0641-\\u064A\\u3041-\\u3096\\u30A1-\\u30FA\\u3400-\\u4DBF\\u4E00-\\u9FFF\\uAC00-\\uD7A3";
const plainSeams = new RegExp(`(?<=[${plain}]{2})[${plain}]`, "gu");
const overSeam = new RegExp(`[${plain}]{2}`, "u");

/**
 * Ends of longer and longer starts of a long text whose first `most` tokens are wanted: for some characters a token, then for four
 * times as many, up to half of it. No normalizer reads across such an end, a seam, and no word but the last. `seams` finds the
 * character after one. @default the third of three plain letters or digits
 */
export function startsOf(text: string, most: number, seams: RegExp = plainSeams): Iterable<number> {
  const first = Math.max(256, 8 * most);
  return 2 * first < text.length ? startsFrom(first, text, seams) : noStarts;
}

const noStarts: readonly number[] = [];

function* startsFrom(first: number, text: string, seams: RegExp): Iterable<number> {
  const seam = new RegExp(seams);
  for (let count = first; 2 * count < text.length; count *= 4) {
    seam.lastIndex = count;
    const match = seam.exec(text);
    if (match === null) return;
    yield match.index;
  }
}

/** Whether no match of a pattern of `tokenizer.json` goes over a seam: it has spaces and signs, and no two plain letters in a row. */
export function readsNoSeam(pattern: unknown): boolean {
  const { String: text, Regex: source } = (pattern ?? {}) as { readonly String?: string; readonly Regex?: string };
  if (text !== undefined) return !overSeam.test(text);
  return /^(?:\\[snrt]|[^\p{L}\p{N}\\.[\](){}|^$?*+]|[+*]|\{\d+,?\d*\})+$/u.test(source ?? "");
}

/** Oniguruma's expression in JavaScript's, with the `u` flag. @throws {Error} a construct that has no translation. */
function translated(source: string): string {
  let result = "";
  /** Where the last atom begins, for a possessive quantifier. */
  let atomAt = -1;
  let groups = 0;
  let foldedUntil = -1;
  for (let i = 0; i < source.length;) {
    const rest = source.slice(i);
    const isFolded = i < foldedUntil;
    const quantifier = /^(?:[?*+]|\{\d+(?:,\d*)?\})([?+]?)/u.exec(rest);
    if (quantifier !== null && atomAt >= 0) {
      const [text, kind] = quantifier;
      if (kind === "+" && !text.startsWith("{")) {
        // What it took is never given back: a lookahead is never entered again.
        const name = `possessive${groups++}`;
        const atom = result.slice(atomAt) + text.slice(0, -1);
        result = `${result.slice(0, atomAt)}(?:(?=(?<${name}>${atom}))\\k<${name}>)`;
      } else if (kind === "+") throw new Error(`${text} is not served`);
      else result += text;
      atomAt = -1;
      i += text.length;
      continue;
    }
    const group = /^\((?:\?(?:[:=!]|<[=!]|i:))?/u.exec(rest);
    if (group !== null) {
      if (rest.startsWith("(?") && group[0] === "(") throw new Error(`${rest.slice(0, 4)} is not served`);
      if (group[0] === "(?i:") {
        foldedUntil = i + endOfGroup(rest);
        result += "(?:";
      } else result += group[0] === "(" ? "(?:" : group[0];
      atomAt = -1;
      i += group[0].length;
      continue;
    }
    const character = String.fromCodePoint(rest.codePointAt(0)!);
    if (character === "[") {
      const end = endOfClass(rest);
      atomAt = result.length;
      result += classOf(rest.slice(0, end), isFolded);
      i += end;
      continue;
    }
    if (character === "|") {
      result += "|";
      atomAt = -1;
      i += 1;
      continue;
    }
    if (character === ")") {
      result += ")";
      // A group as the atom of a possessive quantifier is not known here.
      atomAt = /^\)(?:[?*+]|\{\d+(?:,\d*)?\})\+/u.test(rest) ? -1 : result.length - 1;
      i += 1;
      continue;
    }
    atomAt = result.length;
    if (character === "^") result += "(?<![^\\n])";
    else if (character === "$") result += "(?![^\\n])";
    else if (character === ".") result += "[^\\n]";
    else if (character === "\\") {
      const [text, atom] = escapeOf(rest, false);
      result += atom;
      i += text.length;
      continue;
    } else if (isFolded && /[A-Za-z]/u.test(character)) {
      const lower = character.toLowerCase();
      result += `[${lower}${lower.toUpperCase()}${otherCases[lower] ?? ""}]`;
    } else result += /[\^$.*+?()[\]{}|/]/u.test(character) ? `\\${character}` : character;
    i += character.length;
  }
  return result;
}

function endOfGroup(rest: string): number {
  let depth = 0;
  for (let i = 0; i < rest.length; i++) {
    if (rest[i] === "\\") i++;
    else if (rest[i] === "[") i += endOfClass(rest.slice(i)) - 1;
    else if (rest[i] === "(") depth++;
    else if (rest[i] === ")" && --depth === 0) return i;
  }
  throw new Error("a group has no end");
}

function endOfClass(rest: string): number {
  const start = rest[1] === "^" ? 2 : 1;
  for (let i = start; i < rest.length; i++) {
    if (rest[i] === "\\") i++;
    else if (rest[i] === "[" || rest.startsWith("&&", i)) throw new Error("a class in a class is not served");
    else if (rest[i] === "]" && i > start) return i + 1;
  }
  throw new Error("a class has no end");
}

function classOf(text: string, isFolded: boolean): string {
  let result = text.startsWith("[^") ? "[^" : "[";
  for (let i = result.length; i < text.length - 1;) {
    const rest = text.slice(i);
    if (rest.startsWith("\\")) {
      const [escape, atom] = escapeOf(rest, true);
      result += atom;
      i += escape.length;
      continue;
    }
    const character = String.fromCodePoint(rest.codePointAt(0)!);
    if (isFolded && /[A-Za-z]/u.test(character)) result += character.toLowerCase() + character.toUpperCase();
    else result += /[\^$.*+?()[\]{}|/]/u.test(character) ? `\\${character}` : character;
    i += character.length;
  }
  return `${result}]`;
}

/** An escape, and what it is in JavaScript. */
function escapeOf(rest: string, isInClass: boolean): readonly [text: string, atom: string] {
  const property = /^\\([pP])\{(\^?)([A-Za-z_=]+)\}/u.exec(rest);
  if (property !== null) {
    const [text, letter, not, name] = property;
    const kind = not === "^" ? (letter === "p" ? "P" : "p") : letter;
    for (const known of [name, `Script=${name}`]) {
      const atom = `\\${kind}{${known}}`;
      if (isValid(atom)) return [text, atom];
    }
    throw new Error(`\\p{${name}} is not served`);
  }
  const coded = /^\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))/u.exec(rest);
  if (coded !== null) return [coded[0], `\\u{${coded[1] ?? coded[2] ?? coded[3]}}`];
  const character = rest[1] ?? "";
  const known = Object.hasOwn(escapes, character) ? escapes[character] : undefined;
  if (known !== undefined) return [`\\${character}`, known[isInClass ? 0 : 1]];
  if (/[rntfv]/u.test(character)) return [`\\${character}`, `\\${character}`];
  if (/[A-Za-z0-9]/u.test(character)) throw new Error(`\\${character} is not served`);
  const isSyntax = /[\^$\\.*+?()[\]{}|/-]/u.test(character);
  return [`\\${character}`, isSyntax && (isInClass || character !== "-") ? `\\${character}` : character];
}

function isValid(source: string): boolean {
  try {
    new RegExp(source, "u").test("");
    return true;
  } catch {
    return false;
  }
}
