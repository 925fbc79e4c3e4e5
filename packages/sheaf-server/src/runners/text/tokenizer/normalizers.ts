import { patternOf, readsNoSeam, whiteSpace, withoutSpacesAtEnd } from "./patterns.ts";
import { precompiled } from "./precompiled.ts";
import { textOf } from "./word-model.ts";

export type Normalizer = (text: string) => string;

type Config = Readonly<Record<string, unknown>>;

/** The text before anything else, as `tokenizer.json` has it. @throws {Error} a type that is not served. */
export function normalizerOf(config: unknown): Normalizer {
  if (config === null || config === undefined) return (text) => text;
  const { type, ...own } = config as Config;
  const make = Object.hasOwn(normalizers, String(type)) ? normalizers[String(type)] : undefined;
  if (make === undefined) throw new Error(`the normalizer ${JSON.stringify(type)} is not served`);
  return make(own);
}

/** Whether the normalized start of a text is a start of the normalized text; see `startsOf`. */
export function keepsStarts(config: unknown): boolean {
  const { type, normalizers: list, pattern } = (config ?? {}) as Config;
  return type === "Sequence" ? (list as unknown[]).every(keepsStarts) : type !== "Replace" || readsNoSeam(pattern);
}

/** By type. */
export const normalizers: Readonly<Record<string, (config: Config) => Normalizer>> = {
  Sequence: ({ normalizers: list }) => {
    const all = (list as unknown[]).map(normalizerOf);
    return (text) => all.reduce((result, normalize) => normalize(result), text);
  },
  BertNormalizer: bertNormalizer,
  NFC: () => (text) => text.normalize("NFC"),
  NFD: () => (text) => text.normalize("NFD"),
  NFKC: () => (text) => text.normalize("NFKC"),
  NFKD: () => (text) => text.normalize("NFKD"),
  Lowercase: () => lowercase,
  StripAccents: () => (text) => text.replace(/\p{M}/gu, ""),
  Strip: ({ strip_left: left = true, strip_right: right = true }) => {
    const start = new RegExp(left === true ? `^${whiteSpace}*` : "", "u");
    return (text) => text.slice(start.exec(text)![0].length, right === true ? withoutSpacesAtEnd(text) : undefined);
  },
  Replace: ({ pattern, content }) => {
    const found = patternOf(pattern);
    return (text) => text.replace(found, () => content as string);
  },
  Prepend:
    ({ prepend }) =>
    (text) =>
      text === "" ? "" : (prepend as string) + text,
  Nmt: () => (text) =>
    text
      // oxlint-disable-next-line eslint/no-control-regex
      .replace(/[\u0001-\u0008\u000B\u000E-\u001F\u007F\u008F\u009F]/gu, "")
      // oxlint-disable-next-line eslint/no-control-regex
      .replace(/[\u0009\u000A\u000C\u000D\u1680\u200B-\u200F\u2028\u2029\u2581\uFEFF\uFFFD]/gu, " "),
  Precompiled: ({ precompiled_charsmap: map }) => precompiled(textOf(map)),
};

/** Character by character: a sigma at the end of a word is none in particular. */
export const lowercase: Normalizer = (text) => text.replaceAll("\u03A3", "\u03C3").toLowerCase();

const isSimple = /^[\x20-\x7E]*$/u;
const removed = /[\0\uFFFD\p{Cc}\p{Cf}\p{Co}]/gu;
const spaces = /[\t\n\r]|\p{White_Space}/gu;
const chinese =
  /[\u4E00-\u9FFF\u3400-\u4DBF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B73F}\u{2B740}-\u{2B81F}\u{2B920}-\u{2CEAF}\uF900-\uFAFF\u{2F800}-\u{2FA1F}]/gu;

function bertNormalizer(config: Config): Normalizer {
  const { clean_text: cleans = true, handle_chinese_chars: spacesChinese = true, lowercase: lowers = true } = config;
  const strips = config["strip_accents"] ?? lowers;
  return (text) => {
    if (isSimple.test(text)) return lowers === true ? text.toLowerCase() : text;
    let result = text;
    if (cleans === true) {
      result = result.replace(removed, (character) => (/[\t\n\r]/u.test(character) ? " " : "")).replace(spaces, " ");
    }
    if (spacesChinese === true) result = result.replace(chinese, " $& ");
    if (strips === true) result = result.normalize("NFD").replace(/\p{Mn}/gu, "");
    return lowers === true ? lowercase(result) : result;
  };
}
