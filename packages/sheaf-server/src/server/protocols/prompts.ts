import type { ServedModel } from "../models/served-model.ts";
import { invalid } from "../../problems/problem.ts";
import { anyText, field, oneOf, type Field } from "./fields.ts";

/** A prompt that a request asks for, by name or by the kind of its texts. */
export interface WantedPrompt {
  readonly path: string;
  readonly name?: string | undefined;
  readonly inputType?: string | undefined;
}

/** Prompt names for each kind of text, in the order in which sentence-transformers looks for them. */
const promptNames: Readonly<Record<string, readonly string[]>> = {
  query: ["query"],
  search_query: ["search_query", "query"],
  "retrieval.query": ["retrieval.query", "query"],
  document: ["document", "passage", "corpus"],
  passage: ["passage", "document", "corpus"],
  search_document: ["search_document", "document", "passage", "corpus"],
  "retrieval.passage": ["retrieval.passage", "passage", "document", "corpus"],
};

/** The kind of the texts, in the terms of Cohere, Jina and Voyage. */
export const inputType: Field<string | undefined> = field(
  oneOf(...Object.keys(promptNames), "classification", "clustering"),
  "Kind of the texts; the model's prompt for it is put before each. A model without prompts returns the same vector for every kind.",
);

/** Jina's name for `input_type`. */
export const task: Field<string | undefined> = field(
  oneOf("retrieval.query", "retrieval.passage", "text-matching", "classification", "clustering", "separation"),
  "Task of the vectors; the model's prompt for it is put before each text, as for input_type.",
);

export const promptName: Field<string | undefined> = field(
  anyText,
  "Name of one of the model's prompts, to be put before each text. Default: the model's default prompt.",
);

/**
 * The prompt for a request's texts; undefined for the model's default.
 * @throws {Problem} 422 for a prompt that the model lacks
 */
export function promptOf(
  wanted: WantedPrompt | undefined,
  { name: model, definition: { input } }: ServedModel,
): string | undefined {
  const prompts = (input.kind === "text" ? input.prompts : undefined) ?? {};
  const names = Object.keys(prompts);
  if (wanted?.name !== undefined) {
    if (Object.hasOwn(prompts, wanted.name)) return prompts[wanted.name];
    const expected = names.length === 0 ? `absent: ${model} has no prompts` : `one of ${names.join(", ")}`;
    throw invalid(wanted.path, expected, wanted.name);
  }
  const type = wanted?.inputType;
  if (type === undefined || names.every((name) => prompts[name] === "")) return undefined;
  const known = Object.hasOwn(promptNames, type) ? promptNames[type] : undefined;
  const found = (known ?? [type]).find((name) => Object.hasOwn(prompts, name));
  if (found !== undefined) return prompts[found];
  // If the model has no prompt for this kind of text, none is used, not even the default one.
  if (known !== undefined) return "";
  throw invalid(wanted!.path, `a type that ${model} has a prompt for (${names.join(", ")})`, type);
}

/** Items of texts with a prompt and a side to cut on. */
export function withPrompt(
  items: readonly unknown[],
  prompt: string | undefined,
  cut?: "left" | "right",
): readonly unknown[] {
  return prompt === undefined && cut === undefined ? items : items.map((text) => ({ text, prompt, cut }));
}
