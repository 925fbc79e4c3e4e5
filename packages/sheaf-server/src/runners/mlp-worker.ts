import { Tensor } from "./onnx/runtime.ts";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { joinRows } from "./tensors/join-rows.ts";
import { OnnxGraph } from "./onnx/writer.ts";
import { openSession, type OnnxSession, type SessionSettings } from "./onnx/session.ts";

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

export async function loadMlp(settings: SessionSettings): Promise<OnnxSession> {
  return openSession(mlpGraph(), settings);
}

export async function runMlp(items: Float32Array[], session: OnnxSession): Promise<Float32Array[]> {
  const input = new Tensor("float32", joinRows(items), [items.length, mlpLength]);
  const { output } = await session.run({ input }, ["output"]);
  const rows = output?.data as Float32Array;
  return items.map((_, i) => rows.subarray(i * mlpLength, (i + 1) * mlpLength));
}

async function warmUpMlp(session: OnnxSession): Promise<void> {
  const item = new Float32Array(mlpLength);
  for (const size of session.fixedSizes) {
    await runMlp(
      Array.from({ length: size }, () => item),
      session,
    );
  }
}

const worker: WorkerDefinition<Float32Array, Float32Array, SessionSettings> = defineWorker({
  load: loadMlp,
  warmUp: warmUpMlp,
  run: runMlp,
  unload: (session) => session.release(),
});
export default worker;

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
