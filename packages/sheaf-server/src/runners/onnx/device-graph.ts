import { fileURLToPath } from "node:url";
import { createSession } from "./create-session.ts";
import { Tensor } from "./runtime.ts";

// `x` → Relu → `y`, float32 `[batch, 1]`. In `src` in the package too: the compiler copies no other files.
const graph = fileURLToPath(new URL("../../../src/runners/onnx/relu.onnx", import.meta.url));

/** Runs a graph of one node on a device, to find out whether it is there; `found` is called while its session is open. */
export async function runOnDevice<Found>(device: string, found: () => Found): Promise<Found> {
  const session = await createSession(graph, { device });
  try {
    await session.run({ x: new Tensor("float32", Float32Array.of(1), [1, 1]) });
    return found();
  } finally {
    await session.release();
  }
}
