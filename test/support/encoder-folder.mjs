// A transformer encoder of any shape with random weights, as a folder in the Hugging Face layout: nothing is downloaded, and
// runs cost what those of a trained model of that shape do.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OnnxGraph } from "./onnx-writer.mjs";

/** The shape of all-MiniLM-L6-v2. */
export const miniLm = { layers: 6, width: 384, heads: 12, hidden: 1536, vocabulary: 30_522, maxTokens: 256 };

/** Numbers in [-scale, scale), the same on every machine. */
function noise(count, scale, seed) {
  let state = seed * 2_654_435_761 || 1;
  return Float32Array.from({ length: count }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state / 2 ** 31) * scale;
  });
}

/**
 * `input_ids` and `attention_mask` int64 `[batch, tokens]` → `last_hidden_state` float32 `[batch, tokens, width]`, or with
 * labels → `logits` float32 `[batch, labels]` of the first token.
 */
export function encoderGraph({ layers, width, heads, hidden, vocabulary, maxTokens, labels = [] }) {
  const graph = new OnnxGraph();
  let seed = 0;
  const constant = (axes, scale) => {
    const length = axes.reduce((product, axis) => product * axis, 1);
    return graph.constant(`weight_${++seed}`, "float", axes, noise(length, scale, seed));
  };
  const filled = (length, value) =>
    graph.constant(`weight_${++seed}`, "float", [length], new Float32Array(length).fill(value));
  const dense = (x, from, to) =>
    graph.node("Add", [graph.node("MatMul", [x, constant([from, to], Math.sqrt(3 / from))]), filled(to, 0)]);
  const normal = (x) =>
    graph.node("LayerNormalization", [x, filled(width, 1), filled(width, 0)], { axis: -1, epsilon: { float: 1e-12 } });

  const length = graph.node("Slice", [graph.node("Shape", ["input_ids"]), graph.integers(1), graph.integers(2)]);
  const places = graph.node("Slice", [constant([maxTokens, width], 1), graph.integers(0), length, graph.integers(0)]);
  let x = normal(graph.node("Add", [graph.node("Gather", [constant([vocabulary, width], 1), "input_ids"]), places]));
  const hiddenTokens = graph.node("Sub", [graph.scalar("one", 1), graph.node("Cast", ["attention_mask"], { to: 1 })]);
  const masked = graph.node("Mul", [graph.node("Unsqueeze", [hiddenTokens, graph.integers(1, 2)]), graph.scalar("low", -1e4)]); // prettier-ignore

  const size = width / heads;
  const perHead = (y, perm) =>
    graph.node("Transpose", [graph.node("Reshape", [y, graph.integers(0, 0, heads, size)])], { perm });
  for (let layer = 0; layer < layers; layer++) {
    const query = perHead(dense(x, width, width), [0, 2, 1, 3]);
    const key = perHead(dense(x, width, width), [0, 2, 3, 1]);
    const value = perHead(dense(x, width, width), [0, 2, 1, 3]);
    const scores = graph.node("Div", [graph.node("MatMul", [query, key]), graph.scalar(`scale_${layer}`, Math.sqrt(size))]); // prettier-ignore
    const weights = graph.node("Softmax", [graph.node("Add", [scores, masked])], { axis: -1 });
    const seen = graph.node("Transpose", [graph.node("MatMul", [weights, value])], { perm: [0, 2, 1, 3] });
    const joined = graph.node("Reshape", [seen, graph.integers(0, 0, width)]);
    x = normal(graph.node("Add", [x, dense(joined, width, width)]));
    x = normal(graph.node("Add", [x, dense(gelu(graph, dense(x, width, hidden), layer), hidden, width)]));
  }
  const axes = ["batch", "tokens"];
  const inputs = ["input_ids", "attention_mask"].map((name) => ({ name, type: "int64", axes }));
  if (labels.length === 0) {
    const states = graph.rename(x, "last_hidden_state");
    return graph.model({ inputs, outputs: [{ name: states, type: "float", axes: [...axes, width] }] });
  }
  const first = graph.node("Squeeze", [
    graph.node("Slice", [x, graph.integers(0), graph.integers(1), graph.integers(1)]),
    graph.integers(1),
  ]);
  const logits = graph.rename(dense(first, width, labels.length), "logits");
  return graph.model({ inputs, outputs: [{ name: logits, type: "float", axes: ["batch", labels.length] }] });
}

function gelu(graph, x, layer) {
  const [root, half, one] = [Math.SQRT2, 0.5, 1].map((value, i) => graph.scalar(`gelu_${layer}_${i}`, value));
  const share = graph.node("Add", [graph.node("Erf", [graph.node("Div", [x, root])]), one]);
  return graph.node("Mul", [graph.node("Mul", [x, share]), half]);
}

/**
 * Writes the model, a tokenizer of words `w0`, `w1` … and their settings. A shape with `labels` makes a classifier, with a
 * single one a cross-encoder. @returns the folder.
 */
export function writeEncoderFolder(folder, shape) {
  mkdirSync(folder, { recursive: true });
  const specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
  const words = Array.from({ length: shape.vocabulary - specials.length }, (_, i) => `w${i}`);
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: specials.map((content, id) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true })), // prettier-ignore
    normalizer: null,
    pre_tokenizer: { type: "WhitespaceSplit" },
    post_processor: {
      type: "TemplateProcessing",
      single: [special("[CLS]"), { Sequence: { id: "A", type_id: 0 } }, special("[SEP]")],
      pair: [special("[CLS]"), { Sequence: { id: "A", type_id: 0 } }, special("[SEP]"), { Sequence: { id: "B", type_id: 1 } }, special("[SEP]")], // prettier-ignore
      special_tokens: { "[CLS]": { id: "[CLS]", ids: [2], tokens: ["[CLS]"] }, "[SEP]": { id: "[SEP]", ids: [3], tokens: ["[SEP]"] } }, // prettier-ignore
    },
    decoder: null,
    model: { type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: "##", max_input_chars_per_word: 100, vocab: Object.fromEntries([...specials, ...words].map((word, id) => [word, id])) }, // prettier-ignore
  };
  const files = {
    "model.onnx": encoderGraph(shape),
    "tokenizer.json": JSON.stringify(tokenizer),
    "tokenizer_config.json": JSON.stringify({
      tokenizer_class: "PreTrainedTokenizerFast",
      model_max_length: shape.maxTokens,
      model_input_names: ["input_ids", "attention_mask"],
      pad_token: "[PAD]",
      unk_token: "[UNK]",
      cls_token: "[CLS]",
      sep_token: "[SEP]",
    }),
    "config.json": JSON.stringify({
      model_type: "bert",
      architectures: [shape.labels ? "BertForSequenceClassification" : "BertModel"],
      pad_token_id: 0,
      vocab_size: shape.vocabulary,
      hidden_size: shape.width,
      num_hidden_layers: shape.layers,
      num_attention_heads: shape.heads,
      intermediate_size: shape.hidden,
      max_position_embeddings: shape.maxTokens,
      ...(shape.labels && { id2label: { ...shape.labels } }),
    }),
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

const special = (id) => ({ SpecialToken: { id, type_id: 0 } });
