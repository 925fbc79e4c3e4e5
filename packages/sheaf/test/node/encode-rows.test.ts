import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher } from "../../dist/index.js";
import { workerProcess, workerThread } from "../../dist/node/index.js";
import { endsOf } from "../support/rig.js";
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

for (const open of [workerThread, workerProcess])
  test(`${open.name}: a result above maxResultBytes is an error that does not leave the worker, also when answered early`, async () => {
    const growing =
      "data:text/javascript,export default { run: (items, model, { answer }) => { " +
      "const make = { text: () => 'x'.repeat(1e5), row: () => new Float64Array(1e5), list: () => Array(1e5).fill(1), small: () => [1] }; " +
      "items.forEach((kind, i) => kind.startsWith('early ') && answer(i, make[kind.slice(6)]())); " +
      "return items.map((kind) => make[kind.replace('early ', '')]()); } }";
    const options = { maxResultBytes: 50_000 } as EncodingWorkerOptions;
    await using call = createBatcher(open<string, unknown>(growing, options), { maxBatchSize: 16 });
    const kinds = ["small", "text", "row", "list", "early small", "early text", "early row", "early list", "small"];
    for (const [i, end] of endsOf(await call.settle(kinds)).entries()) {
      if (kinds[i]!.endsWith("small")) assert.deepEqual(end, [1]);
      else assert.match(String(end), /Error.*the result takes \d{6} bytes, more than 50000/);
    }
  });
