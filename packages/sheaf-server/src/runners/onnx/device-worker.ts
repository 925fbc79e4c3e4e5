import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { OnnxGraph } from "./writer.ts";
import { openSession } from "./session.ts";

/** Which device serves, and which were tried before it, each with its reason. */
export interface ServingDevice {
  readonly device: string;
  readonly refused: readonly string[];
}

/** Opens a graph of one node, to find out whether the device is there. */
async function tryDevices(setting: string): Promise<ServingDevice> {
  const graph = new OnnxGraph();
  const y = graph.rename(graph.node("Relu", ["x"]), "y");
  const model = graph.model({
    inputs: [{ name: "x", type: "float", axes: ["batch", 1] }],
    outputs: [{ name: y, type: "float", axes: ["batch", 1] }],
  });
  const { session, device, refused } = await openSession(model, { device: setting });
  await session.release();
  return { device, refused };
}

const worker: WorkerDefinition<string, ServingDevice | Error> = defineWorker({
  // A device that refuses is an answer, not a crash of the batch.
  run: (settings: string[]) =>
    Promise.all(settings.map((setting) => tryDevices(setting).catch((error: unknown) => error as Error))),
});
export default worker;
