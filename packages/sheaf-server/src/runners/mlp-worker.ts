import { InferenceSession, Tensor } from "onnxruntime-node";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { OnnxGraph } from "./onnx-writer.ts";

export const mlpLength: number = 768;
const hiddenLength = 3072;

/** 768 → 3072 → 768 with ReLU between; weights are uniform noise of a fixed seed, scaled to keep the output's size. */
export function mlpGraph(seed = 1): Uint8Array {
  const next = uniformNoise(seed);
  const graph = new OnnxGraph();
  const layer = (x: string, name: string, from: number, to: number): string => {
    const scale = Math.sqrt(3 / from);
    const kernel = new Float32Array(from * to);
    for (let i = 0; i < kernel.length; i++) kernel[i] = next() * scale;
    graph.constant(`${name}_kernel`, "float", [from, to], kernel);
    graph.constant(`${name}_bias`, "float", [to], new Float32Array(to));
    return graph.node("Gemm", [x, `${name}_kernel`, `${name}_bias`]);
  };
  const hidden = graph.node("Relu", [layer("input", "first", mlpLength, hiddenLength)]);
  const output = layer(hidden, "second", hiddenLength, mlpLength);
  return graph.model({
    inputs: [{ name: "input", type: "float", axes: ["batch", mlpLength] }],
    outputs: [{ name: graph.rename(output, "output"), type: "float", axes: ["batch", mlpLength] }],
  });
}

export async function loadMlp(data: { intraOpNumThreads?: number }): Promise<InferenceSession> {
  return InferenceSession.create(mlpGraph(), { intraOpNumThreads: data.intraOpNumThreads ?? 1 });
}

export async function runMlp(items: Float32Array[], session: InferenceSession): Promise<Float32Array[]> {
  const { output } = await session.run({ input: new Tensor("float32", joinRows(items), [items.length, mlpLength]) });
  const rows = output?.data as Float32Array;
  return items.map((_, i) => rows.subarray(i * mlpLength, (i + 1) * mlpLength));
}

const worker: WorkerDefinition<Float32Array, Float32Array, { intraOpNumThreads?: number }> = defineWorker({
  load: loadMlp,
  run: runMlp,
  unload: (session) => session.release(),
});
export default worker;

/** Rows that come back to back in one buffer, as a worker gets them, are one tensor already; others are copied. */
export function joinRows(rows: readonly Float32Array[]): Float32Array {
  const [first] = rows;
  if (first === undefined) return new Float32Array(0);
  const total = rows.reduce((sum, row) => sum + row.length, 0);
  let expectedOffset = first.byteOffset;
  const isOneBlock = rows.every((row) => {
    const follows = row.buffer === first.buffer && row.byteOffset === expectedOffset;
    expectedOffset += row.byteLength;
    return follows;
  });
  if (isOneBlock) return new Float32Array(first.buffer as ArrayBuffer, first.byteOffset, total);
  const joined = new Float32Array(total);
  let offset = 0;
  for (const row of rows) {
    joined.set(row, offset);
    offset += row.length;
  }
  return joined;
}

/** Numbers in [-1, 1): a 32-bit xorshift (Marsaglia 2003), the same on every machine. */
function uniformNoise(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state / 2 ** 31;
  };
}
