import { createSession } from "./create-session.ts";
import { Tensor } from "./runtime.ts";
import { OnnxGraph } from "./writer.ts";

/** Runs a graph of one node on a device, to find out whether it is there; `found` is called while its session is open. */
export async function runOnDevice<Found>(device: string, found: () => Found): Promise<Found> {
  const graph = new OnnxGraph();
  const y = graph.rename(graph.node("Relu", ["x"]), "y");
  const model = graph.model({
    inputs: [{ name: "x", type: "float", axes: ["batch", 1] }],
    outputs: [{ name: y, type: "float", axes: ["batch", 1] }],
  });
  const session = await createSession(model, { device });
  try {
    await session.run({ x: new Tensor("float32", Float32Array.of(1), [1, 1]) });
    return found();
  } finally {
    await session.release();
  }
}
