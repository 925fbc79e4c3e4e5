import assert from "node:assert/strict";
import { test } from "node:test";
import { checks, runCheck } from "../scripts/lib/checks.mjs";

for (const name of Object.keys(checks)) {
  test(`the check "${name}" passes (npm run check; npm run format fixes it)`, async () => {
    const { status, output } = await runCheck(name);
    assert.equal(status, 0, output);
  });
}
