import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OnnxGraph, type OnnxAxis } from "../../dist/runners/onnx-writer.js";

export const folder: string = mkdtempSync(join(tmpdir(), "sheaf-models-"));

export function write(name: string, content: Uint8Array | string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** output = input · 2 + 1 on `[...axes]` floats. */
export function scaling(axes: readonly OnnxAxis[], outputAxes = axes): Uint8Array {
  const graph = new OnnxGraph();
  const doubled = graph.node("Mul", ["x", graph.scalar("two", 2)]);
  const y = graph.rename(graph.node("Add", [doubled, graph.scalar("one", 1)]), "y");
  return graph.model({
    inputs: [{ name: "x", type: "float", axes }],
    outputs: [{ name: y, type: "float", axes: outputAxes }],
  });
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
  return graph.model({
    inputs: [{ name: "x", type: "float", axes: ["batch", 8] }],
    outputs: [{ name: "y", type: "float", axes: ["batch", 8] }],
  });
}

/** Claims a free batch axis, but answers for the first row only. */
export function lyingBatchAxis(): Uint8Array {
  const graph = new OnnxGraph();
  graph.constant("first", "bool", [1], Uint8Array.of(1));
  graph.rename(graph.node("Compress", ["x", "first"], { axis: 0 }), "y");
  return graph.model({
    inputs: [{ name: "x", type: "float", axes: ["batch", 4] }],
    outputs: [{ name: "y", type: "float", axes: ["batch", 4] }],
  });
}
