import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OnnxGraph, type OnnxAxis } from "../../../../test/support/onnx-writer.mjs";

export const folder: string = mkdtempSync(join(tmpdir(), "sheaf-models-"));

export function write(name: string, content: Uint8Array | string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

type OnnxType = Parameters<OnnxGraph["model"]>[0]["inputs"][number]["type"];

/** A model of one input, x, and one output, y. */
function ofOne(
  graph: OnnxGraph,
  axes: readonly OnnxAxis[],
  outputAxes = axes,
  type: OnnxType = "float",
  outputType = type,
): Uint8Array {
  return graph.model({
    inputs: [{ name: "x", type, axes }],
    outputs: [{ name: "y", type: outputType, axes: outputAxes }],
  });
}

/** output = input · 2 + 1 on `[...axes]` floats. */
export function scaling(axes: readonly OnnxAxis[], outputAxes = axes): Uint8Array {
  const graph = new OnnxGraph();
  const doubled = graph.node("Mul", ["x", graph.scalar("two", 2)]);
  graph.rename(graph.node("Add", [doubled, graph.scalar("one", 1)]), "y");
  return ofOne(graph, axes, outputAxes);
}

/** output = input · 2 + 1 on `[batch, 4]` halves. */
export function halves(): Uint8Array {
  const graph = new OnnxGraph();
  const wide = graph.node("Cast", ["x"], { to: 1 });
  const sum = graph.node("Add", [graph.node("Mul", [wide, graph.scalar("two", 2)]), graph.scalar("one", 1)]);
  graph.rename(graph.node("Cast", [sum], { to: 10 }), "y");
  return ofOne(graph, ["batch", 4], ["batch", 4], "float16");
}

/** Embeds int64 ids `[batch, tokens]` in 4 dimensions, adds `bias` float `[batch, 4]`; also gives `ids + 1`. */
export function twoInputs(): Uint8Array {
  const graph = new OnnxGraph();
  graph.constant(
    "table",
    "float",
    [8, 4],
    Float32Array.from({ length: 32 }, (_, i) => i / 8),
  );
  const sum = graph.node("ReduceSum", [graph.node("Gather", ["table", "ids"]), graph.integers(1)], { keepdims: 0 });
  graph.rename(graph.node("Add", [sum, "bias"]), "vector");
  graph.rename(graph.node("Add", ["ids", graph.integers(1)]), "next");
  return graph.model({
    inputs: [
      { name: "ids", type: "int64", axes: ["batch", "tokens"] },
      { name: "bias", type: "float", axes: ["batch", 4] },
    ],
    outputs: [
      { name: "vector", type: "float", axes: ["batch", 4] },
      { name: "next", type: "int64", axes: ["batch", "tokens"] },
    ],
  });
}

/** A dense layer 8 → 8 whose input is quantised to int8 by the range of the whole batch. */
export function dynamicInt8(): Uint8Array {
  const graph = new OnnxGraph();
  const [quantized, scale, zeroPoint] = graph.nodes("DynamicQuantizeLinear", ["x"], 3) as [string, string, string];
  graph.constant(
    "kernel",
    "uint8",
    [8, 8],
    Uint8Array.from({ length: 64 }, (_, i) => (i * 37) % 256),
  );
  graph.constant("kernel_zero", "uint8", [], Uint8Array.of(128));
  const product = graph.node("MatMulInteger", [quantized, "kernel", zeroPoint, "kernel_zero"]);
  graph.rename(graph.node("Mul", [graph.node("Cast", [product], { to: 1 }), scale]), "y");
  return ofOne(graph, ["batch", 8]);
}

/** A batch normalisation in training mode: mean and variance are the batch's own, so an item alone gives zeros. */
export function trainingBatchNorm(): Uint8Array {
  const graph = new OnnxGraph();
  const centred = graph.node("Sub", ["x", graph.node("ReduceMean", ["x"], { axes: [0] })]);
  const variance = graph.node("ReduceMean", [graph.node("Mul", [centred, centred])], { axes: [0] });
  const deviation = graph.node("Sqrt", [graph.node("Add", [variance, graph.scalar("epsilon", 1e-5)])]);
  graph.rename(graph.node("Div", [centred, deviation]), "y");
  return ofOne(graph, ["batch", 2]);
}

/** The operator in training mode: in ONNX Runtime it changes its own mean and variance with every run. */
export function statefulBatchNorm(): Uint8Array {
  const graph = new OnnxGraph();
  const constants = { scale: 1, bias: 0, mean: 0, variance: 1 };
  for (const [name, value] of Object.entries(constants))
    graph.constant(name, "float", [2], Float32Array.of(value, value));
  const inputs = ["x", ...Object.keys(constants)];
  const [normalized] = graph.nodes("BatchNormalization", inputs, 3, { training_mode: 1 }) as [string];
  graph.rename(normalized, "y");
  return ofOne(graph, ["batch", 2]);
}

/** Says of each column which row of the batch is the largest: whole numbers, and 0 for an item alone. */
export function argMaxOfBatch(): Uint8Array {
  const graph = new OnnxGraph();
  const largest = graph.node("ArgMax", ["x"], { axis: 0, keepdims: 1 });
  graph.rename(graph.node("Expand", [largest, graph.node("Shape", ["x"])]), "y");
  return ofOne(graph, ["batch", 4], ["batch", 4], "float", "int64");
}

/** An LSTM whose first axis is time: as a batch its items are the steps of one sequence, and each sees those before it. */
export function timeFirstLstm(): Uint8Array {
  const graph = new OnnxGraph();
  const weights = (length: number, phase: number): Float32Array =>
    Float32Array.from({ length }, (_, i) => Math.sin(i * 1.3 + phase) / 2);
  const [inputs, hidden] = [3, 4];
  graph.constant("w", "float", [1, 4 * hidden, inputs], weights(4 * hidden * inputs, 0));
  graph.constant("r", "float", [1, 4 * hidden, hidden], weights(4 * hidden * hidden, 1));
  graph.rename(graph.node("LSTM", ["x", "w", "r"], { hidden_size: hidden }), "y");
  return ofOne(graph, ["time", "batch", inputs], ["time", 1, "batch", hidden]);
}

/** Adds noise that is another in each run. */
export function noisy(): Uint8Array {
  const graph = new OnnxGraph();
  graph.rename(graph.node("Add", ["x", graph.node("RandomNormalLike", ["x"])]), "y");
  return ofOne(graph, ["batch", 4]);
}

/** Claims a free batch axis, but answers for the first row only. */
export function lyingBatchAxis(): Uint8Array {
  const graph = new OnnxGraph();
  graph.constant("first", "bool", [1], Uint8Array.of(1));
  graph.rename(graph.node("Compress", ["x", "first"], { axis: 0 }), "y");
  return ofOne(graph, ["batch", 4]);
}
