import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { test } from "node:test";
import { createBatcher } from "../../dist/index.js";
import { publishBatches, type BatchMessage } from "../../dist/node/index.js";

test("every batch is published on the channel sheaf:batch, until it is ended", async (t) => {
  const heard: [string, number, string][] = [];
  const listener = (message: unknown): void => {
    const { name, record } = message as BatchMessage;
    heard.push([name, record.size, record.outcome]);
  };
  subscribe("sheaf:batch", listener);
  t.after(() => unsubscribe("sheaf:batch", listener));
  const double = createBatcher((numbers: number[]) => numbers.map((number) => 2 * number), { name: "double" });
  const end = publishBatches(double);
  await double.many([1, 2, 3]);
  end();
  await double(4);
  assert.deepEqual(heard, [["double", 3, "ok"]]);
});
