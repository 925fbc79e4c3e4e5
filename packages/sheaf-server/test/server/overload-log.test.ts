import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { BatcherStats } from "sheaf";
import { OverloadLog } from "../../dist/server/observe/overload-log.js";

/** What the log says in each next second. */
function saying(t: TestContext) {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let stats: Pick<BatcherStats, "overload" | "pause"> = { overload: null, pause: null };
  const logged: string[] = [];
  const say = (line: object, text: string): unknown => logged.push(`${text} ${Object.values(line).join(" ")}`);
  const models = [{ name: "model", stats: () => stats }];
  const log = new OverloadLog({ warn: say, info: say } as never, () => models);
  const second = (next: Partial<typeof stats>): string[] => {
    stats = { overload: null, pause: null, ...next };
    t.mock.timers.tick(1000);
    return logged.splice(0);
  };
  return { log, second };
}

test("the log says once when overload begins to stand, and once when it has ended", (t) => {
  const { log, second } = saying(t);
  const overload = { forMs: 1300, arrivedPerS: 900, servedPerS: 400 };
  assert.deepEqual(second({}), []);
  assert.match(second({ overload }).join(), /model .*400/);
  assert.deepEqual(second({ overload }), []);
  assert.match(second({}).join(), /model .*1300/);
  assert.deepEqual(second({}), []);
  log.close();
  assert.deepEqual(second({ overload }), []);
});

test("the log says once that dispatch is paused, and why, and once that it goes on", (t) => {
  const { log, second } = saying(t);
  assert.deepEqual(second({}), []);
  assert.match(second({ pause: { leftMs: 5000, why: "busy" } }).join(), /^dispatch is paused model .*busy/);
  assert.deepEqual(second({ pause: { leftMs: 4000, why: "busy" } }), []);
  assert.match(second({}).join(), /^dispatch goes on after a pause/);
  log.close();
});
