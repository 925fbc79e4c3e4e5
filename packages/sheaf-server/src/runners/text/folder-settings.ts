import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The facts in a Hugging Face folder about its model. */
export interface FolderSettings {
  readonly modelPath: string;
  readonly task: "embedding" | "classification" | "rerank";
  readonly maxTokens: number;
  readonly padId: number;
  /** Embeddings: how token vectors become one. */
  readonly pooling: "mean" | "cls";
  readonly isNormalized: boolean;
  /** Embeddings: the lengths that a vector may be cut to, as Matryoshka models are trained for. */
  readonly dimensions: readonly number[] | "any" | undefined;
  /** Classification: by id. */
  readonly labels: readonly string[];
  /** The function applied to logits. */
  readonly activation: "softmax" | "sigmoid" | "identity";
}

type Json = Readonly<Record<string, unknown>>;

/**
 * Reads `config.json`, `tokenizer_config.json` and, of sentence-transformers, `modules.json`, `1_Pooling/config.json` and
 * `sentence_bert_config.json`.
 * @throws {Error} naming a file that is missing or broken, or a setting that is not served.
 */
export function readFolder(folder: string): FolderSettings {
  const modelPath = ["model.onnx", "onnx/model.onnx"]
    .map((name) => join(folder, name))
    .find((path) => existsSync(path));
  if (modelPath === undefined) throw new Error(`${folder} has neither model.onnx nor onnx/model.onnx.`);
  if (!existsSync(join(folder, "tokenizer.json")))
    throw new Error(`${folder} has no tokenizer.json: export the tokenizer as a fast one.`);
  const config = readJson(folder, "config.json");
  if (config === undefined) throw new Error(`${folder} has no config.json.`);

  const id2label = (config["id2label"] ?? {}) as Readonly<Record<string, string>>;
  const labels = Object.keys(id2label)
    .toSorted((a, b) => Number(a) - Number(b))
    .map((id) => id2label[id]!);
  const [architecture = ""] = (config["architectures"] ?? []) as string[];
  const isClassifier = architecture.endsWith("ForSequenceClassification");
  const isReranker = isClassifier && (labels.length || config["num_labels"]) === 1;
  const task = isReranker ? "rerank" : isClassifier ? "classification" : "embedding";
  if (task === "classification" && labels.length === 0) throw new Error(`${folder}/config.json has no id2label.`);
  return {
    modelPath,
    task,
    labels,
    activation: activationOf(config, isReranker),
    maxTokens: maxTokensOf(folder, config),
    padId: typeof config["pad_token_id"] === "number" ? config["pad_token_id"] : 0,
    dimensions: dimensionsOf(folder, config),
    ...embeddingSettings(folder),
  };
}

/** As vLLM reads them: `is_matryoshka`, or the lengths one by one as `matryoshka_dimensions`. */
function dimensionsOf(folder: string, config: Json): FolderSettings["dimensions"] {
  const { matryoshka_dimensions: lengths, is_matryoshka: isMatryoshka } = config;
  if (lengths === undefined || lengths === null) return isMatryoshka === true ? "any" : undefined;
  if (Array.isArray(lengths) && lengths.every((length) => Number.isSafeInteger(length) && length >= 1)) return lengths;
  throw new Error(`${folder}/config.json: matryoshka_dimensions must be an array of integers >= 1.`);
}

function activationOf(config: Json, isReranker: boolean): FolderSettings["activation"] {
  const { activation_fn } = (config["sentence_transformers"] ?? {}) as Json;
  const named = activation_fn ?? config["sbert_ce_default_activation_function"];
  if (typeof named === "string" && named.endsWith("Identity")) return "identity";
  return isReranker || config["problem_type"] === "multi_label_classification" ? "sigmoid" : "softmax";
}

/**
 * The smallest limit that the tokenizer, the model's positions and sentence-transformers allow; 512 where none is given.
 */
function maxTokensOf(folder: string, config: Json): number {
  const positions = config["max_position_embeddings"];
  // RoBERTa counts positions from the padding id on.
  const isShifted = /roberta|camembert|mpnet/u.test(String(config["model_type"]));
  const shift = isShifted ? Number(config["pad_token_id"] ?? 1) + 1 : 0;
  const limits = [
    typeof positions === "number" ? positions - shift : undefined,
    readJson(folder, "tokenizer_config.json")?.["model_max_length"],
    readJson(folder, "sentence_bert_config.json")?.["max_seq_length"],
  ].filter((limit): limit is number => typeof limit === "number" && limit >= 1 && limit <= 1_000_000);
  return limits.length === 0 ? 512 : Math.min(...limits);
}

function embeddingSettings(folder: string): Pick<FolderSettings, "pooling" | "isNormalized"> {
  const modules = (readJson(folder, "modules.json") ?? []) as readonly { readonly type?: string }[];
  const types = modules.map(({ type = "" }) => type.split(".").at(-1));
  const unknown = types.find((type) => !["Transformer", "Pooling", "Normalize"].includes(type ?? ""));
  if (unknown !== undefined) throw new Error(`${folder}/modules.json names ${unknown}, which is not served.`);
  const pooling = readJson(folder, "1_Pooling/config.json") ?? {};
  const modes = Object.keys(pooling).filter((key) => key.startsWith("pooling_mode_") && pooling[key] === true);
  const [mode = "pooling_mode_mean_tokens"] = modes;
  if (modes.length > 1 || !["pooling_mode_mean_tokens", "pooling_mode_cls_token"].includes(mode))
    throw new Error(`${folder}/1_Pooling/config.json asks for ${modes.join(", ")}; mean and cls are served.`);
  return { pooling: mode === "pooling_mode_cls_token" ? "cls" : "mean", isNormalized: types.includes("Normalize") };
}

function readJson(folder: string, name: string): Json | undefined {
  const path = join(folder, name);
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Json;
  } catch (error) {
    throw new Error(`${path} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
