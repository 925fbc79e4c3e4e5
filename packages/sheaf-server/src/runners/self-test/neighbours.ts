import type { ModelInput } from "../contract/model-spec.ts";

/** Factor for a sample's numbers, large enough that scaling by the batch shows. */
export const farTimes = 1e6;

/** Texts unlike any sample: rare tokens, repeated ones, other scripts, none. */
export const farTexts: readonly string[] = [
  "!?#@%&*~^|".repeat(3),
  "the ".repeat(30).trim(),
  "\u6f22\u5b57\u{1f4a5}\ufdfa\u0e01\u05d0 \u00df\u0416".repeat(3),
  "[CLS] [SEP] [MASK] [PAD] [UNK] <s> </s> <mask>",
  "0 -1e99 7777777777777 3.14159 0x7f",
  "",
];

/** Valid inputs that are far from a model's samples. */
export function neighboursOf(input: ModelInput, [sample]: readonly unknown[]): unknown[] {
  if (input.kind === "text") return [...farTexts];
  if (input.kind === "text-pair") return farTexts.map((text) => ({ query: text, text }));
  const far = farFrom(sample);
  return far === undefined ? [] : [far];
}

/** The sample with its fractions a million times as large; undefined where it has none. Whole numbers may be counts or ids. */
function farFrom(sample: unknown): unknown {
  if (typeof sample === "number") return Number.isInteger(sample) ? undefined : farTimes * sample;
  if (sample instanceof Float32Array || sample instanceof Float64Array)
    return sample.map((number) => farTimes * number);
  if (typeof sample !== "object" || sample === null || ArrayBuffer.isView(sample)) return undefined;
  const entries = Object.entries(sample).map(([key, value]) => [key, farFrom(value)] as const);
  const changed = entries.filter(([, value]) => value !== undefined);
  if (changed.length === 0) return undefined;
  return Object.assign(Array.isArray(sample) ? [...(sample as unknown[])] : { ...sample }, Object.fromEntries(changed));
}
