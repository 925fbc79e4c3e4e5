import { OnnxGraph } from "../onnx/writer.ts";
import type { UseLiteWeights } from "./weights.ts";

export const useLiteVectorLength: number = 512;
export const useLiteMaxTokens: number = 128;
/** Fills up a shorter text's row of token ids. */
export const useLitePadding: number = -1;

const vocabularySize = 8002;
const embeddingLength = 256;
const width = 512;
const hiddenWidth = 1536;
const headCount = 4;
const modulePrefix = "module/Encoder_en/";
const applyPrefix = "module_apply_default/Encoder_en/";
const encode = "KonaTransformer/Encode/";

/**
 * Universal Sentence Encoder Lite (arXiv 1803.11175) as ONNX: `ids` int32 `[batch, tokens]`, shorter rows filled up
 * with -1 → `vector` float32 `[batch, 512]`, each of length 1.
 *
 * `"packed"`: the dense layers, nearly all of the work, see the real tokens only, `[all tokens, width]`; attention alone
 * is laid out as `[batch, tokens]`. `"padded"` computes every position and is here to measure the gain of packing.
 */
export function useLiteGraph(weights: UseLiteWeights, layout: "packed" | "padded" = "packed"): Uint8Array {
  const graph = new OnnxGraph();
  const rows = layout === "packed" ? packedRows(graph) : paddedRows(graph);
  const { mask } = rows;
  const one = graph.scalar("one", 1);
  const maskedScore = graph.node("Mul", [graph.node("Sub", [one, mask]), graph.scalar("masked", -1e9)]);
  const attentionBias = graph.node("Unsqueeze", [maskedScore, graph.integers(1, 2)]);

  graph.constant(
    "embeddings",
    "float",
    [vocabularySize, embeddingLength],
    weights.tensor("module/Embeddings_en", vocabularySize * embeddingLength),
  );
  graph.constant("timing", "float", [useLiteMaxTokens, embeddingLength], timingSignal(weights));
  const embedded = graph.node("Mul", [graph.node("Gather", ["embeddings", rows.ids]), graph.scalar("two", 2)]);
  let hidden = graph.node("Add", [embedded, graph.node("Gather", ["timing", rows.positions])]);
  for (const layer of [0, 1]) hidden = transformerLayer(graph, weights, rows, attentionBias, layer, hidden);

  // The mean over real tokens, a dense tanh layer, length 1.
  const perText = graph.node("Mul", [rows.perText(hidden), graph.node("Unsqueeze", [mask, graph.integers(2)])]);
  const sum = graph.node("ReduceSum", [perText, graph.integers(1)], { keepdims: 0 });
  const tokenCount = graph.node("ReduceSum", [mask, graph.integers(1)], { keepdims: 1 });
  const mean = graph.node("Div", [sum, graph.node("Max", [tokenCount, one])]);
  const top = `${modulePrefix}hidden_layers/tanh_layer_0/`;
  const dense = gemm(graph, mean, weights, `${top}weights`, `${top}bias`, width, useLiteVectorLength);
  const unit = graph.node("LpNormalization", [graph.node("Tanh", [dense])], { axis: -1, p: 2 });
  return graph.model({
    inputs: [{ name: "ids", type: "int32", axes: ["batch", "tokens"] }],
    outputs: [{ name: graph.rename(unit, "vector"), type: "float", axes: ["batch", useLiteVectorLength] }],
  });
}

/** How token rows `[rows, width]` relate to the texts. */
interface Rows {
  /** 1 for a token, 0 for padding, float `[batch, tokens]`. */
  readonly mask: string;
  /** The token id and the place in its text, of each row. */
  readonly ids: string;
  readonly positions: string;
  /** `[rows, d]` → `[batch, tokens, d]`; values in padding have no meaning. */
  perText(rows: string): string;
  /** `[batch, tokens, d]` → `[rows, d]`. */
  perRow(texts: string, d: number): string;
}

function packedRows(graph: OnnxGraph): Rows {
  graph.constant("int32_padding", "int32", [], Int32Array.of(useLitePadding));
  graph.constant("int64_0", "int64", [], BigInt64Array.of(0n));
  graph.constant("int64_1", "int64", [], BigInt64Array.of(1n));
  const isToken = graph.node("Greater", ["ids", "int32_padding"]);
  // One [text, position] pair per real token, in reading order.
  const indices = graph.node("Transpose", [graph.node("NonZero", [isToken])], { perm: [1, 0] });
  const positions = graph.node("Slice", [indices, graph.integers(1), graph.integers(2), graph.integers(1)]);
  // [batch, tokens] → row: tokens are counted along the flat batch; padding points at row 0 and is masked later.
  const flat = graph.node("Reshape", [graph.node("Cast", [isToken], { to: 7 }), graph.integers(-1)]);
  const counted = graph.node("Mul", [graph.node("CumSum", [flat, "int64_0"]), flat]);
  const row = graph.node("Max", [graph.node("Sub", [counted, "int64_1"]), "int64_0"]);
  const rowOfToken = graph.node("Reshape", [row, graph.node("Shape", ["ids"])]);
  return {
    mask: graph.node("Cast", [isToken], { to: 1 }),
    ids: graph.node("GatherND", ["ids", indices]),
    positions: graph.node("Squeeze", [positions, graph.integers(1)]),
    perText: (rows) => graph.node("Gather", [rows, rowOfToken], { axis: 0 }),
    perRow: (texts) => graph.node("GatherND", [texts, indices]),
  };
}

function paddedRows(graph: OnnxGraph): Rows {
  graph.constant("int32_0", "int32", [], Int32Array.of(0));
  const isToken = graph.node("Not", [graph.node("Less", ["ids", "int32_0"])]);
  const shape = graph.node("Shape", ["ids"]);
  const ones = graph.node("Cast", [graph.node("GreaterOrEqual", ["ids", "ids"])], { to: 7 });
  graph.constant("int64_1_axis", "int64", [], BigInt64Array.of(1n));
  const counted = graph.node("Sub", [graph.node("CumSum", [ones, "int64_1_axis"]), ones]);
  const textAxes = graph.node("Concat", [shape, graph.integers(-1)], { axis: 0 });
  return {
    mask: graph.node("Cast", [isToken], { to: 1 }),
    ids: graph.node("Reshape", [graph.node("Max", ["ids", "int32_0"]), graph.integers(-1)]),
    positions: graph.node("Reshape", [counted, graph.integers(-1)]),
    perText: (rows) => graph.node("Reshape", [rows, textAxes]),
    perRow: (texts, d) => graph.node("Reshape", [texts, graph.integers(-1, d)]),
  };
}

/** Sines then cosines of position × 128 frequencies, `[128 positions, 256]`, as in "Attention is all you need". */
function timingSignal(weights: UseLiteWeights): Float32Array {
  const half = embeddingLength / 2;
  const name = `${applyPrefix}${encode}TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1`;
  const frequencies = weights.tensor(name, half);
  const signal = new Float32Array(useLiteMaxTokens * embeddingLength);
  for (let position = 0; position < useLiteMaxTokens; position++) {
    frequencies.forEach((frequency, i) => {
      signal[position * embeddingLength + i] = Math.sin(position * frequency);
      signal[position * embeddingLength + half + i] = Math.cos(position * frequency);
    });
  }
  return signal;
}

/** Pre-norm attention and feed-forward, each with its residual; the first layer widens 256 → 512. */
function transformerLayer(
  graph: OnnxGraph,
  weights: UseLiteWeights,
  rows: Rows,
  attentionBias: string,
  layer: number,
  input: string,
): string {
  const kernels = `${modulePrefix}${encode}Layer_${layer}/TransformerLayer/MultiheadAttention/`;
  const constants = `${applyPrefix}${encode}Layer_${layer}/TransformerLayer/`;
  const stack = `${applyPrefix}${encode}TransformerStack/Layer_${layer}/TransformerLayer/FFN/`;
  const joined = "/ConcatPartitions/concat";
  const d = layer === 0 ? embeddingLength : width;

  const residual =
    layer === 0
      ? gemm(
          graph,
          input,
          weights,
          `${constants}dense/kernel${joined}`,
          `${constants}dense/bias${joined}`,
          embeddingLength,
          width,
        )
      : input;
  const normed = layerNorm(graph, input, weights, `${constants}layer_prepostprocess/`, d);
  const projected = gemm(
    graph,
    normed,
    weights,
    `${kernels}qkv_transform_single/kernel/part_0`,
    `${constants}MultiheadAttention/qkv_transform_single/bias${joined}`,
    d,
    3 * d,
  );
  const attended = attention(graph, rows.perText(projected), attentionBias, layer, d);
  const output = gemm(
    graph,
    rows.perRow(attended, d),
    weights,
    `${kernels}output_transform_single/kernel/part_0`,
    `${constants}MultiheadAttention/output_transform_single/bias${joined}`,
    d,
    width,
  );
  const attentionResult = graph.node("Add", [output, residual]);

  const ffnInput = layerNorm(graph, attentionResult, weights, `${constants}FFN/layer_prepostprocess/`, width);
  const ffn = (name: string, x: string, from: number, to: number): string =>
    gemm(graph, x, weights, `${stack}${name}/Tensordot/Reshape_1`, `${constants}FFN/${name}/bias${joined}`, from, to);
  const expanded = graph.node("Relu", [ffn("conv1", ffnInput, width, hiddenWidth)]);
  return graph.node("Add", [ffn("conv2", expanded, hiddenWidth, width), attentionResult]);
}

/** Four heads over `[batch, tokens, 3d]` of queries, keys and values → `[batch, tokens, d]`. */
function attention(graph: OnnxGraph, projected: string, bias: string, layer: number, d: number): string {
  const [queries, keys, values] = graph.nodes("Split", [projected, graph.integers(d, d, d)], 3, { axis: 2 });
  const heads = (x: string | undefined, perm: readonly number[]): string =>
    graph.node("Transpose", [graph.node("Reshape", [x ?? "", graph.integers(0, 0, headCount, d / headCount)])], {
      perm,
    });
  const scale = graph.scalar(`attention_scale_${layer}`, 1 / Math.sqrt(d / headCount));
  const scores = graph.node("MatMul", [
    graph.node("Mul", [heads(queries, [0, 2, 1, 3]), scale]),
    heads(keys, [0, 2, 3, 1]),
  ]);
  const shares = graph.node("Softmax", [graph.node("Add", [scores, bias])], { axis: -1 });
  const mixed = graph.node("MatMul", [shares, heads(values, [0, 2, 1, 3])]);
  return graph.node("Reshape", [graph.node("Transpose", [mixed], { perm: [0, 2, 1, 3] }), graph.integers(0, 0, d)]);
}

function gemm(
  graph: OnnxGraph,
  x: string,
  weights: UseLiteWeights,
  kernel: string,
  bias: string,
  from: number,
  to: number,
): string {
  graph.constant(kernel, "float", [from, to], weights.tensor(kernel, from * to));
  graph.constant(bias, "float", [to], weights.tensor(bias, to));
  return graph.node("Gemm", [x, kernel, bias]);
}

function layerNorm(graph: OnnxGraph, x: string, weights: UseLiteWeights, prefix: string, d: number): string {
  const parts = ["scale", "bias"].map((part) => {
    const name = `${prefix}layer_norm/layer_norm_${part}/ConcatPartitions/concat`;
    return graph.constant(name, "float", [d], weights.tensor(name, d));
  });
  return graph.node("LayerNormalization", [x, ...parts], { axis: -1, epsilon: { float: 1e-6 } });
}
