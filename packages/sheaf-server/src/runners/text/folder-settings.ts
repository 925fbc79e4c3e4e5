import { existsSync, statSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { checkedFields, unreadFields, type FolderFile, type Json } from "./folder-table.ts";
import { readJson } from "./read-json.ts";
import { poolingModes, type PoolingMode, type VectorModule } from "./vector-modules.ts";

/** The facts in a Hugging Face folder about its model. */
export interface FolderSettings {
  /** The folder that has `config.json` and `tokenizer.json`. */
  readonly root: string;
  readonly modelPath: string;
  readonly task: "embedding" | "classification" | "rerank";
  /** As `config.json` names it; empty where it names none. */
  readonly architecture: string;
  readonly maxTokens: number;
  /** The side on which long texts are truncated. */
  readonly truncationSide: "left" | "right";
  /** Whether tokens of a second text have type 1. */
  readonly hasTypes: boolean;
  /** Whether texts are lowercased before anything else. */
  readonly isLowercased: boolean;
  readonly padId: number;
  /** The position of a text's first token, where the model asks for positions. */
  readonly firstPosition: number;
  /** Embeddings: the modules that turn token vectors into one vector, in order. */
  readonly modules: readonly VectorModule[];
  /** Whether the folder says how to pool, or mean is the default. */
  readonly isPoolingGiven: boolean;
  /** Prefixes of texts, by name. */
  readonly prompts: Readonly<Record<string, string>>;
  /** The default prompt. */
  readonly defaultPrompt?: string | undefined;
  /** Embeddings: the lengths that a vector may be cut to, as Matryoshka models are trained for. */
  readonly dimensions: readonly number[] | "any" | undefined;
  /** Classification: by id. */
  readonly labels: readonly string[];
  readonly activation: "softmax" | "sigmoid" | "identity";
  /** Ignored fields, by file; they change no result. */
  readonly unreadFields?: string | undefined;
}

export interface FolderOptions {
  /** The graph, as a path in the folder. @default model.onnx or onnx/model.onnx */
  readonly modelFile?: string | undefined;
  /** For a folder without a pooling module: its modes, and `normalize`. @default mean */
  readonly pooling?: readonly string[] | undefined;
}

/**
 * Reads the files of `folderTable`.
 * @throws {Error} naming a file that is missing or broken, or a setting that is not served.
 */
export function readFolder(folder: string, options: FolderOptions = {}): FolderSettings {
  const list = readModules(folder);
  const transformer = list.find(({ type }) => type === "Transformer");
  const root = join(folder, transformer?.path ?? "");
  const modelPath = modelPathOf(root, options.modelFile);
  if (!existsSync(join(root, "tokenizer.json")))
    throw new Error(`${root} has no tokenizer.json: export the tokenizer as a fast one.`);
  const read = (file: FolderFile): Json => checkedFields(readJson(root, file) ?? {}, file, join(root, file));
  if (!existsSync(join(root, "config.json"))) throw new Error(`${root} has no config.json.`);
  const config = read("config.json");
  const tokenizerConfig = read("tokenizer_config.json");
  const sentenceBert = read("sentence_bert_config.json");
  const sentences = readSentenceConfig(folder);
  const tokenizer = read("tokenizer.json");
  checkNormalizer(tokenizerConfig, tokenizer, root);

  const id2label = (config["id2label"] ?? {}) as Readonly<Record<string, string>>;
  const labels = Object.keys(id2label)
    .toSorted((a, b) => Number(a) - Number(b))
    .map((id) => id2label[id]!);
  const [architecture = ""] = (config["architectures"] ?? []) as string[];
  const isClassifier = architecture.endsWith("ForSequenceClassification");
  const labelCount = labelCountOf(config, labels, root);
  const isReranker = isClassifier && labelCount === 1;
  const task = isReranker ? "rerank" : isClassifier ? "classification" : "embedding";
  if (task === "classification" && labels.length === 0) throw new Error(`${folder}/config.json has no id2label.`);
  const activationName =
    sentences["activation_fn"] ??
    (config["sentence_transformers"] as Json | undefined)?.["activation_fn"] ??
    config["sbert_ce_default_activation_function"];
  const isMultiLabel = config["problem_type"] === "multi_label_classification";
  const padId = padIdOf(config, tokenizer, root);
  const shift = shiftOf(config, padId);
  const truncation = tokenizer["truncation"] as Json | null | undefined;
  return {
    root,
    modelPath,
    task,
    architecture,
    labels,
    activation: activationOf(activationName, isReranker || isMultiLabel ? "sigmoid" : "softmax", folder),
    maxTokens: maxTokensOf(config, tokenizerConfig, sentenceBert, root, shift),
    truncationSide: sideOf(tokenizerConfig["truncation_side"] ?? truncation?.["direction"], root),
    hasTypes: hasTypes(tokenizerConfig),
    isLowercased: sentenceBert["do_lower_case"] === true,
    padId: padId ?? 0,
    firstPosition: shift,
    dimensions: dimensionsOf(folder, config),
    unreadFields: unreadFields({ "config.json": config, "tokenizer_config.json": tokenizerConfig }),
    ...promptsOf(sentences, folder, task),
    ...vectorModules(folder, list, task, options.pooling),
  };
}

/** Reading a pipe would never end. */
const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** @throws {Error} the folder has no such graph; the message lists its graphs. */
function modelPathOf(root: string, modelFile: string | undefined): string {
  const found = (names: readonly string[]): string | undefined => names.map((name) => join(root, name)).find(isFile);
  if (modelFile === undefined) {
    const path = found(["model.onnx", "onnx/model.onnx"]);
    if (path !== undefined) return path;
    const others = ["fp16", "quantized", "int8", "uint8", "q8", "q4", "q4f16", "bnb4"]
      .map((kind) => `onnx/model_${kind}.onnx`)
      .filter((name) => existsSync(join(root, name)));
    const hint = others.length === 0 ? "" : ` Choose one with MODEL_FILE: ${others.join(", ")}.`;
    throw new Error(`${root} has neither model.onnx nor onnx/model.onnx.${hint}`);
  }
  const path = found([modelFile, join("onnx", modelFile)]);
  if (path !== undefined && !relative(root, path).startsWith(`..${sep}`)) return path;
  throw new Error(`${root} has no ${modelFile} (MODEL_FILE).`);
}

interface ListedModule {
  readonly type: string;
  readonly path: string;
}

function readModules(folder: string): readonly ListedModule[] {
  const where = join(folder, "modules.json");
  const list = readJson(folder, "modules.json") ?? [];
  if (!Array.isArray(list)) throw new Error(`${where} must be a list of modules.`);
  return list.map((entry: unknown) => {
    const { type = "", path = "" } = checkedFields(entry, "modules.json", where);
    if (typeof type !== "string" || typeof path !== "string" || !isInside(folder, path))
      throw new Error(`${where}: type must be a name and path a folder inside ${folder}.`);
    const name = type.split(".").at(-1) ?? "";
    if (!["Transformer", "Pooling", "Normalize", "Dense", "Dropout"].includes(name))
      throw new Error(
        `${where} names ${name}, which is not served: Transformer, Pooling, Dense, Normalize and Dropout are.`,
      );
    return { type: name, path };
  });
}

const isInside = (folder: string, path: string): boolean => {
  const to = relative(folder, resolve(folder, path));
  return to !== ".." && !to.startsWith(`..${sep}`);
};

function readSentenceConfig(folder: string): Json {
  const file = "config_sentence_transformers.json";
  return checkedFields(readJson(folder, file) ?? {}, file, join(folder, file));
}

/** @throws {Error} modules in an order that is not served, or settings against those of the folder. */
function vectorModules(
  folder: string,
  list: readonly ListedModule[],
  task: FolderSettings["task"],
  setting: readonly string[] | undefined,
): Pick<FolderSettings, "modules" | "isPoolingGiven"> {
  const [first, ...rest] = list;
  if (first !== undefined && first.type !== "Transformer")
    throw new Error(`${folder}/modules.json begins with ${first.type}; Transformer must be first.`);
  const modules = rest.flatMap(({ type, path }): VectorModule[] => {
    if (type === "Pooling") return [poolingOf(join(folder, path))];
    if (type === "Dense") return [denseOf(join(folder, path))];
    if (type === "Dropout") return [];
    if (type !== "Normalize") throw new Error(`${folder}/modules.json has a second ${type}, which is not supported.`);
    // Older versions write no file for it.
    const where = join(folder, path, "config.json");
    const content = path === "" ? undefined : readJson(join(folder, path), "config.json");
    checkedFields(content ?? {}, "Normalize: config.json", where);
    return [{ type: "normalize" }];
  });
  if (task !== "embedding") {
    if (modules.length > 0)
      throw new Error(`${folder}/modules.json has ${rest[0]!.type} after a classifier, which is not supported.`);
    return { modules: [], isPoolingGiven: false };
  }
  // Older and converted folders may have a pooling module but no list of modules.
  const isLoose = first === undefined && existsSync(join(folder, "1_Pooling", "config.json"));
  const own = isLoose ? [poolingOf(join(folder, "1_Pooling"))] : modules;
  const [pooling, ...others] = own;
  const isGiven = pooling?.type === "pooling";
  if (others.some(({ type }) => type === "pooling") || (!isGiven && own.some(({ type }) => type === "dense")))
    throw new Error(`${folder}/modules.json must have exactly one Pooling, right after Transformer.`);
  if (setting === undefined) {
    const mean: VectorModule = { type: "pooling", modes: ["mean"], includesPrompt: true };
    return { modules: isGiven ? own : [mean, ...own], isPoolingGiven: isGiven };
  }
  const modes = setting.filter((word) => word !== "normalize") as PoolingMode[];
  if (isGiven) {
    if (pooling.modes.join() === modes.join()) return { modules: own, isPoolingGiven: true };
    throw new Error(`POOLING is ${setting.join()}, and the folder's own is ${pooling.modes.join()}: unset POOLING.`);
  }
  const isNormalized = setting.includes("normalize") || own.some(({ type }) => type === "normalize");
  return {
    modules: [
      { type: "pooling", modes, includesPrompt: true },
      ...(isNormalized ? [{ type: "normalize" } as const] : []),
    ],
    isPoolingGiven: true,
  };
}

/** Both spellings: `pooling_mode` of sentence-transformers 6, and one flag for each mode before it. */
function poolingOf(folder: string): VectorModule {
  const where = join(folder, "config.json");
  const content = readJson(folder, "config.json");
  if (content === undefined) throw new Error(`${where} is missing, but modules.json names it.`);
  const fields = checkedFields(content, "Pooling: config.json", where);
  const { pooling_mode: mode, include_prompt: includesPrompt = true } = fields;
  const flags = Object.entries(poolingModes).filter(([, { flag }]) => fields[flag] === true);
  const named = mode === undefined ? flags.map(([name]) => name) : Array.isArray(mode) ? mode : [mode];
  const unknown = named.find((name) => !Object.hasOwn(poolingModes, String(name)));
  if (unknown !== undefined)
    throw new Error(`${where}: pooling_mode ${JSON.stringify(unknown)} is not served; ${Object.keys(poolingModes).join(", ")} are.`); // prettier-ignore
  if (typeof includesPrompt !== "boolean") throw new Error(`${where}: include_prompt must be true or false.`);
  return { type: "pooling", modes: (named.length === 0 ? ["mean"] : named) as PoolingMode[], includesPrompt };
}

const denseActivations = ["Identity", "Tanh", "ReLU", "Sigmoid", "GELU", "SiLU"] as const;

function denseOf(folder: string): VectorModule {
  const where = join(folder, "config.json");
  const fields = checkedFields(readJson(folder, "config.json") ?? {}, "Dense: config.json", where);
  const { in_features: from, out_features: to, bias = true, activation_function, use_residual } = fields;
  const name = activation_function === undefined ? "Tanh" : textOf(activation_function).split(".").at(-1);
  const activation = denseActivations.find((known) => known === name);
  if (activation === undefined || !/^torch\.|^Tanh$/u.test(textOf(activation_function ?? "Tanh")))
    throw new Error(`${where}: activation_function ${JSON.stringify(activation_function)} is not served; ${denseActivations.join(", ")} of torch are.`); // prettier-ignore
  if (![from, to].every((length) => Number.isSafeInteger(length) && (length as number) >= 1))
    throw new Error(`${where}: in_features and out_features must be integers >= 1.`);
  const weights = join(folder, "model.safetensors");
  if (!isFile(weights))
    throw new Error(`${folder} has no model.safetensors: save it again with sentence-transformers, which writes one.`);
  return {
    type: "dense",
    weights,
    from: from as number,
    to: to as number,
    hasBias: bias === true,
    activation,
    isResidual: use_residual === true,
  };
}

function promptsOf(
  sentences: Json,
  folder: string,
  task: FolderSettings["task"],
): Pick<FolderSettings, "prompts" | "defaultPrompt"> {
  const where = join(folder, "config_sentence_transformers.json");
  const prompts = (sentences["prompts"] ?? {}) as Readonly<Record<string, unknown>>;
  const isMap = typeof prompts === "object" && !Array.isArray(prompts);
  if (!isMap || Object.values(prompts).some((prompt) => typeof prompt !== "string"))
    throw new Error(`${where}: prompts must be an object of texts.`);
  const name = sentences["default_prompt_name"] ?? undefined;
  if (name !== undefined && (typeof name !== "string" || !Object.hasOwn(prompts, name)))
    throw new Error(`${where}: default_prompt_name ${JSON.stringify(name)} is not one of prompts.`);
  if (task !== "embedding" && name !== undefined && prompts[name] !== "")
    throw new Error(`${where}: default_prompt_name of a classifier or cross-encoder is not served; set it to null.`);
  return { prompts: prompts as Readonly<Record<string, string>>, defaultPrompt: name };
}

/** By default the generic tokenizers of transformers 5 give none. */
function hasTypes({ model_input_names: names, tokenizer_class: name }: Json): boolean {
  return Array.isArray(names) ? names.includes("token_type_ids") : name !== "TokenizersBackend";
}

/** If the files differ, transformers rebuilds the normalizer of BERT's tokenizers from tokenizer_config.json. */
function checkNormalizer(config: Json, { normalizer }: Json, root: string): void {
  const { type, ...own } = (normalizer ?? {}) as Json;
  if (type !== "BertNormalizer" || !textOf(config["tokenizer_class"]).startsWith("Bert")) return;
  const pairs = [
    ["do_lower_case", "lowercase"],
    ["strip_accents", "strip_accents"],
    ["tokenize_chinese_chars", "handle_chinese_chars"],
  ] as const;
  for (const [field, name] of pairs)
    if (config[field] !== undefined && (config[field] ?? null) !== (own[name] ?? null))
      throw new Error(`${root}/tokenizer_config.json: ${field} is ${JSON.stringify(config[field])}, and ${name} of tokenizer.json ${JSON.stringify(own[name])}: make them agree.`); // prettier-ignore
}

function sideOf(side: unknown, root: string): "left" | "right" {
  const lower = typeof side === "string" ? side.toLowerCase() : "right";
  if (lower === "left" || lower === "right") return lower;
  throw new Error(`${root}/tokenizer_config.json: truncation_side must be left or right.`);
}

/** As in vLLM: `is_matryoshka` for any length, or a list `matryoshka_dimensions`. */
function dimensionsOf(folder: string, config: Json): FolderSettings["dimensions"] {
  const { matryoshka_dimensions: lengths, is_matryoshka: isMatryoshka } = config;
  if (lengths === undefined || lengths === null) return isMatryoshka === true ? "any" : undefined;
  if (Array.isArray(lengths) && lengths.every((length) => Number.isSafeInteger(length) && length >= 1)) return lengths;
  throw new Error(`${folder}/config.json: matryoshka_dimensions must be an array of integers >= 1.`);
}

/** @throws {Error} a function that is not served. */
function activationOf(name: unknown, whereNone: "softmax" | "sigmoid", folder: string): FolderSettings["activation"] {
  if (name === undefined || name === null) return whereNone;
  const known = { Identity: "identity", Sigmoid: "sigmoid", Softmax: "softmax" } as const;
  const last = textOf(name).split(".").at(-1)!;
  if (Object.hasOwn(known, last)) return known[last as keyof typeof known];
  throw new Error(
    `${folder}: the activation ${JSON.stringify(name)} is not served; Identity, Sigmoid and Softmax are.`,
  );
}

/** @throws {Error} its fields contradict each other. */
function labelCountOf({ num_labels: given }: Json, { length }: readonly string[], root: string): unknown {
  if (given === undefined || given === null || length === 0 || given === length) return length || given;
  throw new Error(`${root}/config.json: num_labels is ${shown(given)}, and id2label has ${length}: make them agree.`);
}

/** @throws {Error} it is not a token's id. */
function padIdOf({ pad_token_id: id, vocab_size: size }: Json, tokenizer: Json, root: string): number | undefined {
  // Llama's configurations write -1 for none.
  if (id === undefined || id === null || id === -1) return undefined;
  const { vocab } = (tokenizer["model"] ?? {}) as { readonly vocab?: object };
  const added = (tokenizer["added_tokens"] ?? []) as readonly unknown[];
  const tokens = Number.isInteger(size) ? (size as number) : Object.keys(vocab ?? {}).length + added.length;
  if (Number.isInteger(id) && (id as number) >= 0 && (id as number) < tokens) return id as number;
  throw new Error(
    `${root}/config.json: pad_token_id must be a token's id, an integer from 0 to ${tokens - 1}, got ${shown(id)}.`,
  );
}

/** RoBERTa and its relatives start positions after the padding id. */
function shiftOf(config: Json, padId = 1): number {
  const isShifted = /roberta|camembert|mpnet|xmod|longformer|data2vec-text|ibert/u.test(String(config["model_type"]));
  return isShifted ? padId + 1 : 0;
}

/** A larger limit means none, or is a mistake. */
const mostTokens = 1_000_000;

/**
 * The smallest limit that the tokenizer, the model's positions and sentence-transformers allow; 512 where none is given.
 * @throws {Error} one of them is no limit.
 */
function maxTokensOf(config: Json, tokenizerConfig: Json, sentenceBert: Json, root: string, shift: number): number {
  const limitOf = (limit: unknown, from: number, to: number, where: string): number => {
    if (limit === undefined || limit === null) return Infinity;
    if (Number.isInteger(limit) && (limit as number) >= from && (limit as number) <= to) return limit as number;
    const expected = to === Infinity ? `>= ${from}` : `from ${from} to ${to}`;
    throw new Error(`${root}/${where} must be an integer ${expected}, got ${shown(limit)}.`);
  };
  const { max_position_embeddings: positions } = config;
  // Tokenizers without a limit write 1e30.
  const length = limitOf(tokenizerConfig["model_max_length"], 1, Infinity, "tokenizer_config.json: model_max_length");
  const least = Math.min(
    limitOf(positions, shift + 1, Infinity, "config.json: max_position_embeddings") - shift,
    limitOf(sentenceBert["max_seq_length"], 1, mostTokens, "sentence_bert_config.json: max_seq_length"),
    length > mostTokens ? Infinity : length,
  );
  return least === Infinity ? 512 : Math.min(least, mostTokens);
}

const shown = (value: unknown): string => JSON.stringify(value).slice(0, 100);

/** The text itself; an empty one for anything else. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
