/** Kinds of text that tokenizers take differently many characters of to a token. */
export const textKinds = 5;

/** Characters looked at, spread over the text; not evenly, which would meet the same column of each line of a table. */
const sampled = 64;
const golden = 0.618_033_988_75;
const lastAscii = 127;

/** 0 prose, 1 code and other text full of signs, 2 other scripts than Latin, 3 text without spaces such as base64, 4 token ids. */
export function textKindOf(input: unknown): number {
  if (typeof input !== "string") return 4;
  const { length } = input;
  const seen = Math.min(length, sampled);
  let others = 0;
  let spaces = 0;
  let letters = 0;
  for (let i = 0; i < seen; i++) {
    const code = input.charCodeAt(length <= sampled ? i : Math.floor(((i * golden) % 1) * length));
    if (code > lastAscii) others++;
    else if (code === 32 || code === 10) spaces++;
    else if ((code | 32) >= 97 && (code | 32) <= 122) letters++;
  }
  if (others > 0.2 * seen) return 2;
  if (spaces < 0.04 * seen && seen >= 32) return 3;
  return letters + spaces < 0.88 * seen ? 1 : 0;
}
