import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError } from "sheaf";
import { Accounts } from "../../dist/tenants/accounts.js";

test("a sender is bad while more than a quarter of its latest items broke a run, and nobody else is", () => {
  const accounts = new Accounts();
  const [odd, good] = [{}, {}];
  for (let i = 0; i < 3; i++) {
    assert.equal(accounts.isBad(odd), false);
    accounts.broke(odd, new Error("raised"));
  }
  assert.deepEqual([accounts.isBad(odd), accounts.isBad(good), accounts.isBad(undefined)], [true, false, false]);
  for (let i = 0; i < 100; i++) accounts.broke(odd, new Error("raised"));
  let passed = 0;
  for (; accounts.isBad(odd); passed++) accounts.passed(odd);
  // 16 · ln 4: it comes back, whatever it did before.
  assert.equal(passed, 22);
});

test("one broken item in eight keeps its sender's items among the others", () => {
  const accounts = new Accounts();
  const sender = {};
  for (let i = 0; i < 1000; i++) {
    if (i % 8 === 0) accounts.broke(sender, new Error("raised"));
    else accounts.passed(sender);
    assert.equal(accounts.isBad(sender), false);
  }
});

test("a crash or a hang counts for more: its sender is bad at once, and for a few good items", () => {
  for (const [code, goodOnes] of [
    ["WORKER_CRASHED", 1],
    ["RUN_TIMEOUT", 4],
  ] as const) {
    const accounts = new Accounts();
    accounts.broke("sender", new BatcherError(code, "lost"));
    let passed = 0;
    for (; accounts.isBad("sender"); passed++) accounts.passed("sender");
    assert.equal(passed, goodOnes);
  }
});
