import { builtinModels } from "../runners/builtin.ts";

/** Payload template for a built-in model; undefined for any other. */
export function builtinTemplate(model: string): string | undefined {
  if (!Object.hasOwn(builtinModels, model)) return undefined;
  const { input } = builtinModels[model as keyof typeof builtinModels]();
  if (input.kind === "text") return '{"input": {{words 12}}}';
  return input.kind === "floats" ? `{"input": {{floats ${input.length}}}}` : undefined;
}
