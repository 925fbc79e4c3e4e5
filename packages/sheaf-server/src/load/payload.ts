import { seededRandom, weightsOf, type Weights } from "sheaf/internal/tuning";

/** Different bodies sent in turn: enough that caches and deduplication do not flatter a server. */
const variants = 64;
/** Lengths need more: a p99 is one body in a hundred. */
const variantsOfLengths = 1024;
const maxNumbers = 1_000_000;

const words =
  "batch queue request model vector token river stone window light garden paper signal engine winter bridge " +
  "market music letter forest silver morning number story harbor circle planet school weather doctor camera answer";
const vocabulary = words.split(" ");

/** Sent in turn, or by a request's number. */
export type Bodies = readonly string[] | ((index: number) => string);

/**
 * Request bodies from a template: `{{floats 768}}` (numbers in −1…1 as a JSON array), `{{words 12}}` (a JSON string, or its
 * bare words inside one), `{{int 100}}` (0…99), `{{i}}` (the body's number). Without a placeholder the one body is the template itself.
 * With `lengths` they say how many words each `{{words N}}` has.
 * @throws {RangeError} naming a placeholder that is none of these, or where there are no words to have a length.
 */
export function bodiesFromTemplate(template: string, seed: number, lengths?: Weights): string[] {
  const fill = filling(template, seed);
  const length = lengths && weightsOf(lengths, seed ^ 0x3c6ef372);
  const varied = lengths === undefined ? variants : variantsOfLengths;
  const count = template.includes("{{") ? varied : 1;
  if (length !== undefined && !hasWords(template))
    throw new RangeError(`lengths are for templates with {{words N}}, got ${JSON.stringify(template)}`);
  return Array.from({ length: count }, (_, i) => fill(i, length));
}

/**
 * The same with the length of each request's text given. They are made as they are sent: a record has millions. A template without
 * `{{words N}}` has no lengths.
 */
export function bodiesOfLengths(template: string, seed: number, lengths: Float64Array): Bodies {
  if (!hasWords(template)) return bodiesFromTemplate(template, seed);
  const fill = filling(template, seed);
  return (index) => fill(index, () => Math.min(maxNumbers, Math.max(1, Math.round(lengths[index]!))));
}

const hasWords = (template: string): boolean => /\{\{\s*words\s/.test(template);

/** Fills a template in, for a body's number. */
function filling(template: string, seed: number): (i: number, length?: () => number) => string {
  const random = seededRandom(seed);
  return (i, length) =>
    template.replace(
      /\{\{\s*(\w+)(?:\s+(\d+))?\s*\}\}/g,
      (text, name: string, size: string | undefined, at: number) => {
        const given = size === undefined ? undefined : Number(size);
        const value = placeholder(name, name === "words" ? (length?.() ?? given) : given, i, random);
        if (value !== undefined) return name === "words" && !isInString(template, at) ? JSON.stringify(value) : value;
        throw new RangeError(
          `unknown placeholder ${text}: use {{floats N}}, {{words N}}, {{int N}} (N from 1 to ${maxNumbers}) or {{i}}`,
        );
      },
    );
}

function placeholder(name: string, size: number | undefined, i: number, random: () => number): string | undefined {
  if (name === "i" && size === undefined) return String(i);
  if (size === undefined || size < 1 || size > maxNumbers) return undefined;
  if (name === "int") return String(Math.floor(random() * size));
  if (name === "floats") {
    return `[${Array.from({ length: size }, () => (2 * random() - 1).toFixed(4)).join(",")}]`;
  }
  return name === "words" ? wordsItem(size, random) : undefined;
}

/** Whether a place in a template of JSON is inside a string: after an odd number of quotes that no backslash hides. */
const isInString = (template: string, at: number): boolean =>
  (template.slice(0, at).replaceAll(/\\./g, "").match(/"/g) ?? []).length % 2 === 1;

export const wordsItem = (count: number, random: () => number): string =>
  Array.from({ length: count }, () => vocabulary[Math.floor(random() * vocabulary.length)]!).join(" ");

/** Single items from a template of JSON. @throws {RangeError} where it is not JSON once filled in. */
export function itemsFromTemplate(template: string, seed: number): unknown[] {
  return bodiesFromTemplate(template, seed).map((text) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw new RangeError(
        `an item must be JSON, such as {{floats 768}}, {{words 12}} or '"text"', got ${JSON.stringify(template)}`,
      );
    }
  });
}

/** Request bodies from a file: one a line for `.jsonl` and `.ndjson`, else the whole text is the one body. */
export function bodiesFromFile(path: string, text: string): string[] {
  if (!/\.(jsonl|ndjson)$/.test(path)) return [text];
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new RangeError(`${path} holds no line`);
  return lines;
}
