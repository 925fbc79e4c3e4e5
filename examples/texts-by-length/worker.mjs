// Runs in the worker thread. Texts of like length share a pass of the model; where a batch is cut is learned from their times.
import { InferenceSession, Tensor } from "onnxruntime-node";
import { measurePasses, PassCost, runInPasses, selfTest } from "sheaf/models";
import { defineWorker } from "sheaf/node";

const maxTokens = 256;
/** This model's tokens are bytes. With a tokenizer of your own: its ids. */
const tokensOf = (text) => new TextEncoder().encode(text).subarray(0, maxTokens);

/** Mean vectors of rows of token ids, the shorter ones padded. */
async function embed(rows, session) {
  const longest = Math.max(...rows.map((row) => row.length));
  const ids = new BigInt64Array(rows.length * longest);
  const mask = new BigInt64Array(rows.length * longest);
  rows.forEach((row, i) =>
    row.forEach((id, j) => {
      ids[i * longest + j] = BigInt(id);
      mask[i * longest + j] = 1n;
    }),
  );
  const tensor = (values) => new Tensor("int64", values, [rows.length, longest]);
  const { last_hidden_state: states } = await session.run({ input_ids: tensor(ids), attention_mask: tensor(mask) });
  const width = states.dims[2];
  return rows.map((row, i) => {
    const vector = new Float32Array(width);
    for (let j = 0; j < row.length; j++)
      for (let k = 0; k < width; k++) vector[k] += states.data[(i * longest + j) * width + k] / row.length;
    return vector;
  });
}

export default defineWorker({
  async load({ file }) {
    const session = await InferenceSession.create(file, { intraOpNumThreads: 1 });
    const samples = ["a cat", "3 of 4", "A longer text than the others."].map(tokensOf);
    const { verdict } = await selfTest((rows) => embed(rows, session), samples);
    // A quantised model would be "slightly-dependent": its vectors change a little with their company.
    if (verdict !== "independent") console.warn(`This model's results are ${verdict} of their batch.`);
    return { session, cost: new PassCost() };
  },
  warmUp: ({ session, cost }) =>
    measurePasses(cost, (size, length) => embed(new Array(size).fill(new Uint8Array(length).fill(97)), session), {
      maxLength: maxTokens,
    }),
  run(texts, { session, cost }, { answer, signal }) {
    const rows = texts.map(tokensOf);
    const lengths = rows.map((row) => row.length);
    // With `answer` callers of short texts have their vectors before the long texts of the batch have run.
    return runInPasses(rows, { lengths, cost, answer, signal, run: (pass) => embed(pass, session) });
  },
  unload: ({ session }) => session.release(),
});
