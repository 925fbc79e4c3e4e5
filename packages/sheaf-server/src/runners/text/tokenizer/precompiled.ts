/**
 * The normalisation table of SentencePiece: a double array (Aoe 1989, as darts-clone lays it out) from texts to offsets of
 * their replacements. Each grapheme of fewer than six bytes is looked up as a whole, then character by character. As in the
 * reference a grapheme is replaced by what its shortest prefix maps to.
 * @throws {Error} the table is broken.
 */
export function precompiled(base64: string): (text: string) => string {
  const table = Buffer.from(base64, "base64");
  if (table.length === 0) return (text) => text;
  const trieBytes = table.length < 4 ? -1 : table.readUInt32LE(0);
  if (trieBytes < 4 || 4 + trieBytes > table.length) throw new Error("precompiled_charsmap is broken");
  const units = Uint32Array.from({ length: trieBytes / 4 }, (_, i) => table.readUInt32LE(4 + i * 4));
  const replacements = table.subarray(4 + trieBytes);
  const known = new Map<string, string | undefined>();

  const look = (text: string): string | undefined => {
    let node = offsetOf(units[0]!);
    for (const byte of Buffer.from(text)) {
      if (byte === 0) return undefined;
      node ^= byte;
      const unit = units[node] ?? 0;
      if ((unit & 0x8000_00ff) >>> 0 !== byte) return undefined;
      node ^= offsetOf(unit);
      if (((unit >>> 8) & 1) === 1) {
        const start = units[node]! & 0x7fff_ffff;
        return replacements.toString("utf8", start, replacements.indexOf(0, start));
      }
    }
    return undefined;
  };
  const replacementOf = (text: string): string | undefined => {
    if (known.has(text)) return known.get(text);
    const replacement = look(text);
    if (known.size < mostKnown) known.set(text, replacement);
    return replacement;
  };
  const replaceCharacters = (text: string): string => {
    let result = "";
    for (const character of text) result += replacementOf(character) ?? character;
    return result;
  };
  return (text) => {
    if (!joining.test(text)) return replaceCharacters(text);
    let result = "";
    for (const { segment } of graphemes.segment(text)) {
      const whole = segment.length < 6 && Buffer.byteLength(segment) < 6 ? replacementOf(segment) : undefined;
      result += whole ?? replaceCharacters(segment);
    }
    return result;
  };
}

const mostKnown = 10_000;

const offsetOf = (unit: number): number => (unit >>> 10) << ((unit & 0x200) >>> 6);

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Characters that may make one grapheme with a neighbour. Without them every character is one. */
const joining =
  // oxlint-disable-next-line eslint/no-misleading-character-class
  /\r|[\p{M}\p{Grapheme_Extend}\p{RI}\p{EMod}\u200C\u200D\u1100-\u11FF\uA960-\uA97C\uD7B0-\uD7FB\u0E33\u0EB3\u0600-\u0605\u06DD\u070F\u0890\u0891\u08E2\u0D4E\u{110BD}\u{110CD}]/u;
