import assert from "node:assert/strict";
import { test } from "node:test";
import { logProblem } from "../../dist/observe/log.js";
import { Problem } from "../../dist/problems/problem.js";

test("a code is logged once a second, with a count of the others, a short message and its stack once", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const lines: { line: any; message: string }[] = [];
  const log: any = { level: "info", error: (line: object, message: string) => lines.push({ line, message }) };
  const fail = (message: string, code: "MODEL_ERROR" | "TIMEOUT" = "MODEL_ERROR"): void => {
    const cause = new Error(message);
    cause.stack = `Error: ${message}\n    at model.js:1:1`;
    logProblem({ id: "r", headers: {}, log }, new Problem(code, message, { cause }));
  };
  for (let i = 0; i < 1000; i++) fail(`bad ${"x".repeat(9000)}`);
  fail("late", "TIMEOUT");
  assert.deepEqual(
    [lines.length, lines[0]!.message.length, lines[0]!.line.err.stack],
    [2, 301, "\n    at model.js:1:1"],
  );
  t.mock.timers.tick(1000);
  assert.deepEqual(lines[2], {
    line: { code: "MODEL_ERROR", more: 999 },
    message: "999 more of MODEL_ERROR within a second",
  });
  fail("again");
  assert.deepEqual(lines[3]!.line.err, { type: "Error", message: "again" });
});
