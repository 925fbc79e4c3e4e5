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
  const models = [{ name: "model", stats: () => ({ overload }) }];
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
