import { invalid } from "../../../problems/problem.ts";
import type { TextsToEmbed } from "../embed-texts.ts";
import { fieldsOf, modelNameOf, wordOf } from "../fields.ts";

/** The forms of vectors that every model gives. */
export const embeddingTypes = ["float", "base64"] as const;
export type EmbeddingType = (typeof embeddingTypes)[number];

/** Uses of a vector: no model here makes another one for them. */
export const inputTypes = ["search_document", "search_query", "classification", "clustering"] as const;

/** Sheaf's own header sets the priority. */
export const ignoredKeys: readonly string[] = ["priority"];

const keys = ["texts", "model", "input_type", "embedding_types", "output_dimension", "truncate"];

export interface CohereTexts extends TextsToEmbed {
  /** The forms of the vectors, by name in the reply; undefined: bare arrays of numbers. */
  readonly types: readonly EmbeddingType[] | undefined;
}

export function readEmbed(body: unknown, version: 1 | 2): CohereTexts {
  const fields = fieldsOf(body, "an object with texts", keys, ignoredKeys);
  const { texts } = fields;
  if (!Array.isArray(texts)) throw invalid("texts", "an array of texts", texts);
  wordOf(fields, "input_type", inputTypes);
  const truncate = wordOf(fields, "truncate", ["END", "NONE"]) ?? "END";
  const types = readTypes(fields["embedding_types"]) ?? (version === 1 ? undefined : (["float"] as const));
  return {
    name: modelNameOf(fields),
    texts,
    path: "texts",
    dimensions: fields["output_dimension"],
    dimensionsPath: "output_dimension",
    refuseTruncated: truncate === "NONE" ? '"NONE"' : undefined,
    isJson: types === undefined || types.includes("float"),
    types,
  };
}

function readTypes(types: unknown): readonly EmbeddingType[] | undefined {
  if (types === undefined) return undefined;
  if (!Array.isArray(types) || types.length === 0)
    throw invalid("embedding_types", "an array that is not empty", types);
  const wrong = types.findIndex((type) => !embeddingTypes.includes(type as EmbeddingType));
  if (wrong >= 0) throw invalid(`embedding_types[${wrong}]`, '"float" or "base64"', types[wrong]);
  return [...new Set(types as EmbeddingType[])];
}
