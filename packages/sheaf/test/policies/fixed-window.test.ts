import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedWindow } from "../../dist/index.js";
import { view } from "./view.js";

for (const trigger of ["hybrid", "time", "size"] as const)
  test(`${trigger}: a window ends exactly maxWaitMs after its first item`, () => {
    const { decide } = fixedWindow({ trigger });
    const window = { waiting: 3, oldestAtMs: 100, maxWaitMs: 10 };
    assert.deepEqual(decide(view({ ...window, nowMs: 109.999 })), { askAgainAtMs: 110 });
    assert.deepEqual(decide(view({ ...window, nowMs: 110 })), { run: 3, reason: "window" });
  });
