export type Json = Readonly<Record<string, unknown>>;

/** How a field is treated. A refused field stops the model unless its value changes nothing. */
type Use = "obeyed" | "no effect" | "refused";

interface FieldRule {
  readonly use: Use;
  /** Text for users; for a refused field what is accepted and what to do. */
  readonly says: string;
  /** Refused fields: whether a value changes nothing. @default only null */
  readonly accepts?: (value: unknown) => boolean;
}

interface FileRules {
  /** Whether a field that is not in the table stops the model: any field of such a file may change a vector. */
  readonly isStrict: boolean;
  readonly fields: Readonly<Record<string, FieldRule>>;
}

export type FolderFile =
  | "modules.json"
  | "Pooling: config.json"
  | "Dense: config.json"
  | "Normalize: config.json"
  | "config_sentence_transformers.json"
  | "sentence_bert_config.json"
  | "config.json"
  | "tokenizer_config.json"
  | "tokenizer.json";

const obeyed = (says: string): FieldRule => ({ use: "obeyed", says });
const noEffect = (says: string): FieldRule => ({ use: "no effect", says });
const refused = (says: string, accepts: (value: unknown) => boolean = () => false): FieldRule => ({
  use: "refused",
  says,
  accepts,
});
const isOneOf =
  (...values: readonly unknown[]) =>
  (value: unknown): boolean =>
    values.includes(value);
const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;

const sentenceVector = refused('"sentence_embedding" is accepted', isOneOf("sentence_embedding"));

/**
 * Every file of a text model's folder that is read, and its fields. The page `docs/reference/text-folders.md` shows the same
 * table, and a test compares them.
 */
export const folderTable: Readonly<Record<FolderFile, FileRules>> = {
  "modules.json": {
    isStrict: true,
    fields: {
      idx: noEffect("the order is that of the list"),
      name: noEffect("a name"),
      path: obeyed("where the module's own files are"),
      type: obeyed("Transformer, Pooling, Dense, Normalize and Dropout; others are refused"),
      kwargs: noEffect("names of arguments of Python's encode"),
    },
  },
  "Pooling: config.json": {
    isStrict: true,
    fields: {
      embedding_dimension: noEffect("the model's output has it"),
      word_embedding_dimension: noEffect("the model's output has it"),
      pooling_mode: obeyed("one mode, or a list whose vectors are joined"),
      pooling_mode_cls_token: obeyed("the first token"),
      pooling_mode_max_tokens: obeyed("the largest of each number"),
      pooling_mode_mean_tokens: obeyed("the mean"),
      pooling_mode_mean_sqrt_len_tokens: obeyed("the sum by the square root of the length"),
      pooling_mode_weightedmean_tokens: obeyed("the mean, weighted by the place of the token"),
      pooling_mode_lasttoken: obeyed("the last token"),
      include_prompt: obeyed("false: the tokens of a prompt are left out"),
    },
  },
  "Dense: config.json": {
    isStrict: true,
    fields: {
      in_features: obeyed("must be the length of the vector before it"),
      out_features: obeyed("the length of the vector"),
      bias: obeyed("whether the weights have one"),
      activation_function: obeyed("Identity, Tanh, ReLU, Sigmoid, GELU and SiLU of torch; others are refused"),
      module_input_name: sentenceVector,
      module_output_name: sentenceVector,
      use_residual: obeyed("adds the vector before it"),
    },
  },
  "Normalize: config.json": {
    isStrict: true,
    fields: { module_input_name: sentenceVector, module_output_name: sentenceVector },
  },
  "config_sentence_transformers.json": {
    isStrict: true,
    fields: {
      __version__: noEffect("versions of the libraries that wrote it"),
      model_type: refused(
        '"SentenceTransformer" and "CrossEncoder" are accepted; sparse and multi-vector models are not served',
        isOneOf("SentenceTransformer", "CrossEncoder"),
      ),
      prompts: obeyed("texts that go before a text"),
      default_prompt_name: obeyed("the prompt of a request that names none"),
      similarity_fn_name: noEffect("/rerank compares vectors by their cosine"),
      activation_fn: obeyed("Identity, Sigmoid and Softmax of torch for a cross-encoder; others are refused"),
      truncate_dim: refused("leave it out, and ask for dimensions in the request"),
    },
  },
  "sentence_bert_config.json": {
    isStrict: true,
    fields: {
      max_seq_length: obeyed("the most tokens of a text"),
      do_lower_case: obeyed("texts are lowercased first"),
      transformer_task: refused(
        '"feature-extraction" and "sequence-classification" are accepted',
        isOneOf("feature-extraction", "sequence-classification"),
      ),
      modality_config: refused(
        'text alone, with the method "forward" and the output "last_hidden_state" or "logits", is accepted',
        isTextOnly,
      ),
      module_output_name: refused(
        '"token_embeddings" and "scores" are accepted',
        isOneOf("token_embeddings", "scores"),
      ),
      processing_kwargs: refused("an empty object is accepted", isEmpty),
      unpad_inputs: noEffect("how batches are laid out"),
      query_length: refused("of multi-vector models"),
      document_length: refused("of multi-vector models"),
      query_expansion: refused("of multi-vector models"),
      model_args: refused("an empty object is accepted", isEmpty),
      tokenizer_args: refused("an empty object is accepted", isEmpty),
      config_args: refused("an empty object is accepted", isEmpty),
    },
  },
  "config.json": {
    isStrict: false,
    fields: {
      architectures: obeyed("…ForSequenceClassification: a classifier, or a cross-encoder"),
      id2label: obeyed("the labels of a classifier"),
      num_labels: obeyed("1: a cross-encoder"),
      problem_type: obeyed("multi_label_classification: a sigmoid for each label"),
      pad_token_id: obeyed("the token that fills a batch"),
      model_type: obeyed("where positions begin, as in RoBERTa"),
      max_position_embeddings: obeyed("the most tokens of a text"),
      sentence_transformers: obeyed("its activation_fn, as config_sentence_transformers.json"),
      sbert_ce_default_activation_function: obeyed("the same, of older versions"),
      is_matryoshka: obeyed("vectors may be cut to any length"),
      matryoshka_dimensions: obeyed("the lengths that vectors may be cut to"),
    },
  },
  "tokenizer_config.json": {
    isStrict: false,
    fields: {
      model_max_length: obeyed("the most tokens of a text"),
      truncation_side: obeyed("left: a text that is too long is cut at its start"),
      model_input_names: obeyed("without token_type_ids every type is 0"),
      tokenizer_class: obeyed("TokenizersBackend: the same, where model_input_names is absent"),
      padding_side: noEffect("a text's vector does not depend on its padding"),
      do_lower_case: obeyed("must agree with tokenizer.json"),
      strip_accents: obeyed("must agree with tokenizer.json"),
      tokenize_chinese_chars: obeyed("must agree with tokenizer.json"),
    },
  },
  "tokenizer.json": {
    isStrict: true,
    fields: {
      version: noEffect("of the format"),
      truncation: obeyed("its direction; the limit is that of the other files"),
      padding: noEffect("a text's vector does not depend on its padding"),
      added_tokens: obeyed("tokens that are found before anything else"),
      normalizer: obeyed("read by Hugging Face's library"),
      pre_tokenizer: obeyed("read by Hugging Face's library"),
      model: obeyed("read by Hugging Face's library"),
      post_processor: obeyed("read by Hugging Face's library"),
      decoder: noEffect("makes texts of tokens"),
    },
  },
};

function isTextOnly(value: unknown): boolean {
  const { text, ...others } = (value ?? {}) as Readonly<Record<string, Json | undefined>>;
  return (
    Object.keys(others).length === 0 &&
    text?.["method"] === "forward" &&
    ["last_hidden_state", "logits"].includes(String(text["method_output_name"]))
  );
}

/** Limits of `unreadFields`: fields a file, characters a field. */
const mostFields = 30;
const longestField = 60;

/** "config.json: hidden_act, hidden_size": the fields of files' objects that are not in the table; undefined for none. */
export function unreadFields(files: Partial<Readonly<Record<FolderFile, Json>>>): string | undefined {
  const named = Object.entries(files).flatMap(([file, content]) => {
    const unread = Object.keys(content).filter(
      (field) => !Object.hasOwn(folderTable[file as FolderFile].fields, field),
    );
    if (unread.length === 0) return [];
    const shown = unread.slice(0, mostFields).map((field) => field.slice(0, longestField));
    const more = unread.length - shown.length;
    return [`${file}: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`];
  });
  return named.length === 0 ? undefined : named.join("; ");
}

/**
 * The fields of a file's object, checked against the table.
 * @param where the file, for messages
 * @throws {Error} naming a field that is not served, and what can be done
 */
export function checkedFields(content: unknown, file: FolderFile, where: string): Json {
  if (typeof content !== "object" || content === null || Array.isArray(content))
    throw new Error(`${where} must be a JSON object.`);
  const { isStrict, fields } = folderTable[file];
  for (const [field, value] of Object.entries(content)) {
    const rule = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (rule === undefined) {
      if (!isStrict) continue;
      throw new Error(`${where}: ${field} is unknown and could change results. Remove it if it does not.`);
    }
    if (rule.use === "refused" && value !== null && !rule.accepts!(value))
      throw new Error(`${where}: ${field} ${JSON.stringify(value)} is not served: ${rule.says}.`);
  }
  return content as Json;
}
