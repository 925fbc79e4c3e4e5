// What /openapi.json says against what the server does; `npm run prove -- openapi` is the same with 500 examples each.
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithoutPython } from "./lib/python.mjs";
import { schemathesis } from "./lib/schemathesis.mjs";

test("schemathesis: every operation answers as /openapi.json says", { skip: skipWithoutPython }, async (t) => {
  const { status, output } = await schemathesis(t, { examples: 20, seed: 1 });
  assert.equal(status, 0, output);
  const [, selected, tested] = /Selected: (\d+)\/\d+\s+Tested: (\d+)/.exec(output) ?? [];
  assert.ok(Number(selected) >= 25 && tested === selected, output);
});
