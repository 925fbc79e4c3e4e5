import type { ModelInput, ModuleSpec } from "../contract/model-spec.ts";

export type Sampler = (index: number) => unknown;

export interface SampleContent {
  text(index: number): string;
  query(index: number): string;
  /** Number `i` of the item. */
  number(i: number, index: number): number;
}

const texts = ["The cat sits outside, 3 of 4!", "a", "Zebras stand still while the wind is calm."];

/** Between -1 and 1, and the same each time. */
export const noise = (i: number, index: number): number => Math.sin((i + 1) * 12.9898 + index);

const fixedContent: SampleContent = {
  text: (index) => texts[index % texts.length]!,
  query: () => "cat",
  number: noise,
};

/** Makes up items for an input; undefined for tensors and JSON. By default no two neighbours are alike, and runs repeat. */
export function samplerFor(input: ModelInput, content: SampleContent = fixedContent): Sampler | undefined {
  const { text, query, number } = content;
  if (input.kind === "text") return text;
  if (input.kind === "text-pair") return (index) => ({ query: query(index), text: text(index) });
  if (input.kind === "floats")
    return (index) => Float32Array.from({ length: input.length }, (_, i) => number(i, index));
  return undefined;
}

/** The `sample` that a worker module exports: an item, or a function of its index. */
export const samplerOf = (exported: unknown): Sampler =>
  typeof exported === "function" ? (exported as Sampler) : () => exported;

/** `count` items that a model takes: made up, else its sample again and again; undefined without either. */
export function trialItems({ input, sample }: ModuleSpec, count: number): unknown[] | undefined {
  const make = samplerFor(input) ?? (sample === undefined ? undefined : samplerOf(sample));
  return make && Array.from({ length: count }, (_, index) => make(index));
}
