// A model on WebGPU whose runs fail: whether the device is lost is up to the driver that its process finds.
import { defineWorker } from "sheaf/node";
import { WebGpuSession } from "../../../packages/sheaf-server/dist/runners/onnx/webgpu-session.js";

export default defineWorker({
  load: () => {
    const run = () => Promise.reject(new Error("the run failed"));
    return new WebGpuSession({ inputMetadata: [], outputMetadata: [], run }, [1]);
  },
  run: async (items, session) => [await session.run({}, [])],
});
