import { objectOf } from "../../codec/inputs.ts";
import { embedsTexts } from "../../contract/model-definition.ts";
import type { Models } from "../../models/models.ts";
import { invalid } from "../../../problems/problem.ts";
import type { TextsToEmbed } from "../embed-texts.ts";
import { fieldsOf, modelNameOf, withoutNulls, type Fields } from "../fields.ts";

/** Weaviate's request has the empty fields of its reply. */
export const ignoredKeys: readonly string[] = ["dims", "vector", "error"];

/** No model here makes another vector of a query. */
export const ignoredConfig: readonly string[] = ["task_type"];

export interface WeaviateTexts extends TextsToEmbed {
  /** Whether `texts` were given, not `text`. */
  readonly isSeveral: boolean;
}

export function readVectors(body: unknown, models: Models): WeaviateTexts {
  const fields = fieldsOf(body, "an object with text", ["text", "texts", "config", "model"], ignoredKeys);
  const { text, texts, config = {} } = fields;
  if (text !== undefined && texts !== undefined) throw invalid("", "either text or texts", body);
  if (texts !== undefined && !Array.isArray(texts)) throw invalid("texts", "an array of texts", texts);
  if (texts === undefined && typeof text !== "string") throw invalid("text", "a text", text);
  const name = modelNameOf(fields);
  const isSeveral = texts !== undefined;
  const own = isSeveral ? { texts, path: "texts" } : { texts: text, path: "text" };
  return { name, ...own, isSeveral, dimensions: readConfig(config, name, models), dimensionsPath: "config.dimensions" };
}

/** The length that is asked for. Weaviate sends `masked_mean` by default, whatever the model: its own pooling counts then. */
function readConfig(config: unknown, name: string | undefined, { all }: Models): unknown {
  const keys = ["pooling_strategy", "dimensions", ...ignoredConfig];
  const fields: Fields = objectOf(withoutNulls(config), "config", "an object", keys);
  const { pooling_strategy: pooling = "masked_mean", dimensions } = fields;
  const model = all.find(({ name: own, definition }) => (name === undefined ? embedsTexts(definition) : own === name));
  const output = model?.definition.output;
  const isOwn = output?.kind === "vector" && output.pooling === pooling;
  if (pooling !== "masked_mean" && !isOwn)
    throw invalid("config.pooling_strategy", '"masked_mean", or the pooling of the model', pooling);
  return dimensions;
}
