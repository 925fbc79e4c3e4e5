import assert from "node:assert/strict";
import { test } from "node:test";
import { withoutStack } from "../../dist/problems/without-stack.js";

test("a refusal has its message and no stack, and the errors after it have theirs", () => {
  const refusal = withoutStack(() => new RangeError("no room"));
  assert.deepEqual([refusal.message, refusal.stack], ["no room", "RangeError: no room"]);
  assert.match(new Error("after").stack!, /\n\s+at /);
  assert.throws(() =>
    withoutStack(() => {
      throw new Error("while it was made");
    }),
  );
  assert.match(new Error("after").stack!, /\n\s+at /);
});
