// Runs in the worker thread: the model is loaded once and sees whole batches.
import { InferenceSession, Tensor } from "onnxruntime-node";
import { defineWorker } from "sheaf/node";

const inputLength = 32;

export default defineWorker({
  load: ({ file }) => InferenceSession.create(file, { intraOpNumThreads: 1 }),
  async run(items, session) {
    // One tensor for the batch, [items, 32] → [items, 4], and each caller's row of it.
    const data = new Float32Array(items.length * inputLength);
    items.forEach((item, row) => data.set(item, row * inputLength));
    const { scores } = await session.run({ input: new Tensor("float32", data, [items.length, inputLength]) });
    const [, length] = scores.dims;
    return items.map((_, row) => scores.data.subarray(row * length, (row + 1) * length));
  },
  unload: (session) => session.release(),
});
