import { fileURLToPath } from "node:url";
import { Tensor } from "./onnx/runtime.ts";
import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { joinRows } from "./tensors/join-rows.ts";
import { openSession, type OnnxSession, type SessionSettings } from "./onnx/session.ts";

export const mlpLength: number = 768;
const hiddenLength = 3072;

/** 768 → 3072 → 768 with ReLU between; its external data `weights` is what `mlpWeights` gives. */
export const mlpGraph: string = fileURLToPath(new URL("../../src/runners/mlp.onnx", import.meta.url));

/** The kernels of both layers, one after the other: uniform noise of a fixed seed, scaled to keep the output's size. */
export function mlpWeights(seed = 1): Float32Array {
  const next = uniformNoise(seed);
  const weights = new Float32Array(2 * mlpLength * hiddenLength);
  for (let i = 0; i < weights.length; i++) {
    const inputs = i < weights.length / 2 ? mlpLength : hiddenLength;
    weights[i] = next() * Math.sqrt(3 / inputs);
  }
  return weights;
}

export async function loadMlp(settings: SessionSettings): Promise<OnnxSession> {
  return openSession(mlpGraph, { ...settings, weights: new Uint8Array(mlpWeights().buffer) });
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
