/** Kinds of text that tokenizers take differently many characters of to a token. */
export const textKinds = 5;

/** Characters looked at, spread over the text. */
const sampled = 64;
const lastAscii = 127;

/** 0 prose, 1 code and other text full of signs, 2 other scripts than Latin, 3 text without spaces such as base64, 4 token ids. */
export function textKindOf(input: unknown): number {
  if (typeof input !== "string") return 4;
  const step = Math.max(1, Math.floor(input.length / sampled));
  let seen = 0;
  let others = 0;
  let spaces = 0;
  let letters = 0;
  for (let i = 0; i < input.length; i += step) {
    const code = input.charCodeAt(i);
    seen++;
    if (code > lastAscii) others++;
    else if (code === 32 || code === 10) spaces++;
    else if ((code | 32) >= 97 && (code | 32) <= 122) letters++;
  }
  if (others > 0.2 * seen) return 2;
  if (spaces < 0.04 * seen && seen >= 32) return 3;
  return letters + spaces < 0.88 * seen ? 1 : 0;
}
