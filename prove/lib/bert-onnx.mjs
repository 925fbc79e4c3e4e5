import { readFileSync } from "node:fs";
import { OnnxGraph } from "../../test/support/onnx-writer.mjs";

/** The tensors of a `.safetensors` file: u64 length of a JSON header, the header, then the bytes. float32 only. */
export function readSafetensors(path) {
  const bytes = readFileSync(path);
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes));
  const tensors = new Map();
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
    if (dtype !== "F32") continue;
    const [from, to] = offsets.map((offset) => 8 + headerBytes + offset);
    // A copy, because the bytes may be at any address.
    tensors.set(name, { shape, data: new Float32Array(Uint8Array.from(bytes.subarray(from, to)).buffer) });
  }
  return tensors;
}

/** A BERT encoder (Devlin et al. 2018) as exported for sentence embeddings: ids, mask and types in, last_hidden_state out. */
export function bertOnnx(config, tensors) {
  const { hidden_size: width, num_attention_heads: heads, num_hidden_layers: layers, layer_norm_eps: epsilon } = config;
  const graph = new OnnxGraph();
  const weight = (name) => {
    const { shape, data } = tensors.get(name) ?? missing(name);
    return graph.constant(name, "float", shape, data);
  };
  const norm = (x, name) =>
    graph.node("LayerNormalization", [x, weight(`${name}.weight`), weight(`${name}.bias`)], {
      epsilon: { float: epsilon },
    });
  const dense = (x, name) => {
    const kernel = graph.node("Transpose", [weight(`${name}.weight`)], { perm: [1, 0] });
    return graph.node("Add", [graph.node("MatMul", [x, kernel]), weight(`${name}.bias`)]);
  };
  // [batch, tokens, width] → [batch, heads, tokens, width / heads]
  const split = (x, perm) =>
    graph.node("Transpose", [graph.node("Reshape", [x, graph.integers(0, 0, heads, width / heads)])], { perm });

  const tokens = graph.node("Gather", [graph.node("Shape", ["input_ids"]), graph.integers(1)]);
  const positions = graph.node("Slice", [
    weight("embeddings.position_embeddings.weight"),
    graph.integers(0),
    tokens,
    graph.integers(0),
  ]);
  const words = graph.node("Gather", [weight("embeddings.word_embeddings.weight"), "input_ids"]);
  const types = graph.node("Gather", [weight("embeddings.token_type_embeddings.weight"), "token_type_ids"]);
  let x = norm(graph.node("Add", [graph.node("Add", [words, types]), positions]), "embeddings.LayerNorm");
  const hidden = graph.node("Sub", [graph.scalar("one", 1), graph.node("Cast", ["attention_mask"], { to: 1 })]);
  const bias = graph.node("Unsqueeze", [graph.node("Mul", [hidden, graph.scalar("low", -1e9)]), graph.integers(1, 2)]);
  const scale = graph.scalar("scale", 1 / Math.sqrt(width / heads));
  const [half, root] = [graph.scalar("half", 0.5), graph.scalar("root_half", Math.SQRT1_2)];
  for (let layer = 0; layer < layers; layer++) {
    const at = `encoder.layer.${layer}`;
    const query = split(dense(x, `${at}.attention.self.query`), [0, 2, 1, 3]);
    const key = split(dense(x, `${at}.attention.self.key`), [0, 2, 3, 1]);
    const value = split(dense(x, `${at}.attention.self.value`), [0, 2, 1, 3]);
    const scores = graph.node("Add", [graph.node("Mul", [graph.node("MatMul", [query, key]), scale]), bias]);
    const attended = graph.node("MatMul", [graph.node("Softmax", [scores], { axis: -1 }), value]);
    const merged = graph.node("Reshape", [
      graph.node("Transpose", [attended], { perm: [0, 2, 1, 3] }),
      graph.integers(0, 0, width),
    ]);
    const attention = dense(merged, `${at}.attention.output.dense`);
    x = norm(graph.node("Add", [attention, x]), `${at}.attention.output.LayerNorm`);
    const inner = dense(x, `${at}.intermediate.dense`);
    const erf = graph.node("Erf", [graph.node("Mul", [inner, root])]);
    const gelu = graph.node("Mul", [
      graph.node("Mul", [inner, half]),
      graph.node("Add", [erf, graph.scalar(`one_${layer}`, 1)]),
    ]);
    x = norm(graph.node("Add", [dense(gelu, `${at}.output.dense`), x]), `${at}.output.LayerNorm`);
  }
  graph.rename(x, "last_hidden_state");
  return graph.model({
    inputs: ["input_ids", "attention_mask", "token_type_ids"].map((name) => ({
      name,
      type: "int64",
      axes: ["batch", "tokens"],
    })),
    outputs: [{ name: "last_hidden_state", type: "float", axes: ["batch", "tokens", width] }],
  });
}

function missing(name) {
  throw new Error(`The weights have no ${name}: not a BERT encoder as this proof knows it.`);
}
