import assert from "node:assert/strict";
import { test } from "node:test";
import { AdviceLog } from "../../dist/server/observe/advice-log.js";

test("advice is logged once a minute at most, while batches run, and again only when it says something else", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const stats = { batches: 0, advice: [] as string[] };
  const logged: string[][] = [];
  const log = { info: ({ advice }: { advice: string[] }) => logged.push(advice) };
  const model = { name: "model", stats: () => ({ ...stats }) };
  const adviceLog = new AdviceLog(log as never, () => [model]);
  const minute = (ran: number, ...advice: string[]): string[][] => {
    stats.batches += ran;
    stats.advice = advice;
    t.mock.timers.tick(59_999);
    assert.deepEqual(logged, [], "not before the minute is over");
    t.mock.timers.tick(1);
    return logged.splice(0);
  };
  assert.deepEqual(minute(60), []);
  assert.deepEqual(minute(60, "Batches are 12 % full."), [["Batches are 12 % full."]]);
  assert.deepEqual(minute(60, "Batches are 13.5 % full."), [], "the same with another figure");
  assert.deepEqual(minute(60), []);
  assert.deepEqual(minute(60, "Batches are 12 % full."), [["Batches are 12 % full."]], "gone, and back");
  assert.deepEqual(minute(0, "Batches are 12 % full.", "Runs contend."), [], "nothing has run");
  assert.deepEqual(minute(60, "Runs contend."), [["Runs contend."]]);
  adviceLog.close();
  assert.deepEqual(minute(60, "Do not batch."), []);
});
