import { objectOf } from "../../codec/inputs.ts";
import type { Models } from "../../models/models.ts";
import { invalid } from "../../../problems/problem.ts";
import type { TextsToEmbed } from "../embed-texts.ts";
import { fieldsOf, flagOf, withoutNulls, type Fields } from "../fields.ts";
import type { TokenLimit } from "../truncation.ts";

/** A model is served until the server ends. */
export const ignoredKeys: readonly string[] = ["keep_alive"];

/** Options that steer generation, memory or threads: none of them changes a vector. */
export const ignoredOptions: readonly string[] = [
  "embedding_only", "f16_kv", "frequency_penalty", "keep_alive", "logits_all", "low_vram", "main_gpu", "min_p", "mirostat",
  "mirostat_eta", "mirostat_tau", "num_batch", "num_gpu", "num_keep", "num_predict", "num_thread", "numa", "penalize_newline",
  "presence_penalty", "repeat_last_n", "repeat_penalty", "seed", "stop", "temperature", "tfs_z", "top_k", "top_p", "typical_p",
  "use_mlock", "use_mmap", "vocab_only",
]; // prettier-ignore

/** `POST /api/embed`: Ollama's vectors have length 1. */
export function readEmbed(body: unknown, models: Models): TextsToEmbed {
  const keys = ["model", "input", "truncate", "dimensions", "options", "stream"];
  const fields = fieldsOf(body, "an object with model and input", keys, ignoredKeys);
  refuseStream(fields);
  return {
    name: modelOf(fields, "model", models),
    texts: fields["input"],
    path: "input",
    dimensions: fields["dimensions"],
    refuseTruncated: flagOf(fields, "truncate", true) ? undefined : "false",
    tokenLimit: readOptions(fields),
    isUnit: true,
  };
}

/** `POST /api/embeddings`: one text, whose vector stays as the model makes it. */
export function readPrompt(body: unknown, models: Models): TextsToEmbed {
  const fields = fieldsOf(
    body,
    "an object with model and prompt",
    ["model", "prompt", "options", "stream"],
    ignoredKeys,
  );
  refuseStream(fields);
  const { prompt } = fields;
  if (typeof prompt !== "string") throw invalid("prompt", "a text", prompt);
  return { name: modelOf(fields, "model", models), texts: prompt, path: "prompt", tokenLimit: readOptions(fields) };
}

/** `POST /api/show`: the name of a model; older clients call the field `name`. */
export function readShow(body: unknown, models: Models): string {
  const fields = fieldsOf(body, "an object with model", ["model", "name"], ["verbose"]);
  return modelOf(fields, fields["model"] === undefined && fields["name"] !== undefined ? "name" : "model", models);
}

/** Ollama's clients may name a model with its tag. */
function modelOf(fields: Fields, key: string, { deployments }: Models): string {
  const name = fields[key];
  if (typeof name !== "string") throw invalid(key, "the name of a model", name);
  if (!name.endsWith(tag) || deployments.some((deployment) => deployment.name === name)) return name;
  return name.slice(0, -tag.length);
}

/** The tag of every model here. */
export const tag = ":latest";

function refuseStream({ stream = false }: Fields): void {
  if (stream !== false) throw invalid("stream", "false: the reply comes in one piece", stream);
}

/** A context that would cut texts before the model does is refused. */
function readOptions({ options = {} }: Fields): TokenLimit | undefined {
  const expected = "an object of options";
  const { num_ctx: tokens } = objectOf(withoutNulls(options), "options", expected, ["num_ctx", ...ignoredOptions]);
  if (tokens === undefined) return undefined;
  if (!Number.isSafeInteger(tokens) || (tokens as number) < 1)
    throw invalid("options.num_ctx", "an integer >= 1", tokens);
  return { path: "options.num_ctx", tokens: tokens as number };
}
