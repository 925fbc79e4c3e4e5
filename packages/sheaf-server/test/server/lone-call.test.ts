import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../dist/index.js";
import { doubling, serving } from "./serving.js";

/** A model of so many slots, whose runs take some milliseconds. */
function waiting(slots: number): ModelDefinition {
  const run = async (items: readonly Float32Array[]): Promise<Float32Array[]> => {
    await new Promise((resolve) => setTimeout(resolve, 3));
    return items.map((item) => item.map((number) => number * 2));
  };
  const done = async (): Promise<void> => undefined;
  return { ...doubling(), run: { slots, ready: done, run, close: done } } as ModelDefinition;
}

for (const slots of [1, 8])
  test(`no lone request is held for its deadline, with ${slots} slots`, async (t) => {
    const server = await serving(t, [waiting(slots)]);
    for (const timeoutMs of [100, 1000, 25_000])
      for (let call = 0; call < 10; call++)
        await server.post("/infer", [1, 2, 3], { "x-request-timeout-ms": String(timeoutMs) });
    const { text } = await server.get("/metrics");
    const reasons = [...text.matchAll(/^sheaf_batches_total\{batcher="double",reason="(\w+)"\} (\d+)$/gm)];
    const counts: Record<string, number> = Object.fromEntries(
      reasons.map(([, reason, count]) => [reason, Number(count)]),
    );
    assert.ok(counts["idle"]! >= 20, JSON.stringify(counts));
    assert.deepEqual(
      Object.entries(counts).filter(([reason, count]) => reason !== "idle" && count > 0),
      [],
    );
  });
