import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher } from "../../dist/index.js";
import { workerProcess, workerThread } from "../../dist/node/index.js";
import { encodedRow, type EncodingWorkerOptions } from "../../dist/internal/node.js";

const echo = "data:text/javascript,export default { run: (items) => items }";
/** A row as its length, and the thread that wrote it. */
const encoder =
  "data:text/javascript,import { threadId } from 'node:worker_threads'; export const maxBytes = () => 40; " +
  "export const write = (row, target, at) => at + target.write(`${row.length} by ${process.pid}/${threadId}`, at)";

const here = `by ${process.pid}/0`;
const textOf = (row: Float32Array): string | undefined => encodedRow(row)?.toString();

for (const open of [workerThread, workerProcess]) {
  test(`${open.name}: a worker encodes the rows of the batches for which that is wanted`, async () => {
    let isWanted = true;
    const encodeRows = { module: encoder, wanted: () => isWanted };
    await using call = createBatcher(
      open<Float32Array, Float32Array>(echo, { resultRows: "view", encodeRows } as EncodingWorkerOptions),
      {
        maxBatchSize: 4,
      },
    );
    const [first, second] = await Promise.all([call(Float32Array.of(1, 2, 3)), call(Float32Array.of(4))]);
    assert.match(textOf(first)!, /^3 by \d+\/\d+$/);
    assert.match(textOf(second)!, /^1 by \d+\/\d+$/);
    assert.ok(!textOf(first)!.endsWith(here), "not on this thread");
    assert.deepEqual([...first], [1, 2, 3]);
    isWanted = false;
    assert.equal(textOf(await call(Float32Array.of(5))), undefined);
  });
}

for (const open of [workerThread, workerProcess])
  test(`${open.name}: a row that is answered early is encoded too`, async () => {
    const answering =
      "data:text/javascript,export default { run: (rows, model, { answer }) => { answer(0, rows[0]); return rows; } }";
    await using call = createBatcher(
      open<Float32Array, Float32Array>(answering, {
        resultRows: "view",
        encodeRows: { module: encoder },
      } as EncodingWorkerOptions),
      { maxBatchSize: 4 },
    );
    const rows = await call.many([Float32Array.of(1, 2, 3), Float32Array.of(4)]);
    assert.match(textOf(rows[0]!)!, /^3 by /);
    assert.match(textOf(rows[1]!)!, /^1 by /);
  });

test("a module that is not a row encoder rejects ready() and says what it must export", async () => {
  const executor = workerThread(echo, { encodeRows: { module: echo } } as EncodingWorkerOptions);
  await assert.rejects(executor.ready(), /is not a row encoder: it must export maxBytes/);
  await executor.close();
});
