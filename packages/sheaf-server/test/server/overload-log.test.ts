import assert from "node:assert/strict";
import { test } from "node:test";
import type { BatcherStats } from "sheaf";
import { OverloadLog } from "../../dist/server/observe/overload-log.js";

test("the log says once when overload begins to stand, and once when it has ended", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let overload: BatcherStats["overload"] = null;
  const logged: string[] = [];
  const log = {
    warn: ({ model, servedPerS }: { model: string; servedPerS: number }) => logged.push(`${model} ${servedPerS}`),
    info: ({ model, forMs }: { model: string; forMs: number }) => logged.push(`${model} after ${forMs}`),
  };
  const models = [{ name: "model", stats: () => ({ overload, pause: null }) }];
  const overloadLog = new OverloadLog(log as never, () => models);
  const second = (next: BatcherStats["overload"]): string[] => {
    overload = next;
    t.mock.timers.tick(1000);
    return logged.splice(0);
  };
  assert.deepEqual(second(null), []);
  assert.deepEqual(second({ forMs: 300, arrivedPerS: 900, servedPerS: 400 }), ["model 400"]);
  assert.deepEqual(second({ forMs: 1300, arrivedPerS: 900, servedPerS: 400 }), []);
  assert.deepEqual(second(null), ["model after 1300"]);
  assert.deepEqual(second(null), []);
  overloadLog.close();
  assert.deepEqual(second({ forMs: 300, arrivedPerS: 900, servedPerS: 400 }), []);
});

test("the log says once that dispatch is paused, and why, and once that it goes on", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let pause: BatcherStats["pause"] = null;
  const logged: string[] = [];
  const log = {
    warn: ({ leftMs, why }: { leftMs: number; why: string }, text: string) => logged.push(`${text} ${leftMs} ${why}`),
    info: (_: unknown, text: string) => logged.push(text),
  };
  const models = [{ name: "model", stats: () => ({ overload: null, pause }) }];
  const overloadLog = new OverloadLog(log as never, () => models);
  const second = (next: BatcherStats["pause"]): string[] => {
    pause = next;
    t.mock.timers.tick(1000);
    return logged.splice(0);
  };
  assert.deepEqual(second(null), []);
  assert.deepEqual(second({ leftMs: 5000, why: "busy" }), ["dispatch is paused 5000 busy"]);
  assert.deepEqual(second({ leftMs: 4000, why: "busy" }), []);
  assert.deepEqual(second(null), ["dispatch goes on after a pause"]);
  overloadLog.close();
});
