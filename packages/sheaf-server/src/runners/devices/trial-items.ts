import type { ModuleSpec } from "../contract/model-spec.ts";

const texts = ["a", "The cat sits outside, 3 of 4!", "Zebras stand still while the wind is calm."];

/** So many items that a model takes, no two neighbours alike where they can be made up; undefined where none is known. */
export function trialItems({ input, sample }: ModuleSpec, count: number): unknown[] | undefined {
  const make = makerOf(input);
  if (make !== undefined) return Array.from({ length: count }, (_, index) => make(index));
  return sample === undefined ? undefined : new Array<unknown>(count).fill(sample);
}

function makerOf(input: ModuleSpec["input"]): ((index: number) => unknown) | undefined {
  const textAt = (index: number): string => texts[index % texts.length]!;
  if (input.kind === "text") return textAt;
  if (input.kind === "text-pair") return (index) => ({ query: "cat", text: textAt(index) });
  if (input.kind === "floats")
    return (index) => Float32Array.from({ length: input.length }, (_, i) => Math.sin((i + 1) * 12.9898 + index));
  return undefined;
}
