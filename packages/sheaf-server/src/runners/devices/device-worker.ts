import { defineWorker, type WorkerDefinition } from "sheaf/node";
import { runOnDevice } from "../onnx/device-graph.ts";
import { softwareAdapter } from "./software-adapter.ts";

export interface FoundDevice {
  /** The driver, where WebGPU's only adapter computes in software. */
  readonly software?: string | undefined;
}

async function find(device: string): Promise<FoundDevice> {
  return runOnDevice(device, () => (device === "webgpu" ? { software: softwareAdapter() } : {}));
}

const worker: WorkerDefinition<string, FoundDevice | Error> = defineWorker({
  // A device that refuses is an answer, not a crash of the batch.
  run: (devices: string[]) =>
    Promise.all(devices.map((device) => find(device).catch((error: unknown) => error as Error))),
});
export default worker;
