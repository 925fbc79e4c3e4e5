import assert from "node:assert/strict";
import { test } from "node:test";
import { headlessClauses, headlessEverywhere } from "../scripts/lib/headless.mjs";

const phrases = (prose) => headlessClauses(prose).map(({ phrase }) => phrase);

for (const bad of [
  "What waits goes first.",
  "It sends what came over the pipe.",
  "What holds an instance of a model.",
  "The batch takes whatever waits.",
  "An array has the others; who answered all may return nothing.",
])
  test(`counted: ${bad}`, () => assert.equal(phrases(bad).length, 1));

for (const good of [
  "What does it cost?",
  "The error says what it got.",
  "The message says what is wrong, what is allowed, and what it got.",
  "The log tells the operator what to do.",
  "Whatever the policy says, the limit holds.",
  "Callers, who may cancel, get an error.",
  "Waiting items go first.",
])
  test(`not counted: ${good}`, () => assert.deepEqual(phrases(good), []));

test("a clause is found where it begins", () => {
  assert.deepEqual(headlessClauses("Fine so far. Then what waits goes."), [{ phrase: "what waits goes.", offset: 18 }]);
});

test("every kind of prose is read", () => {
  const read = Object.entries(headlessEverywhere()).map(([kind, { words }]) => [kind, words > 5000]);
  assert.deepEqual(read, [
    ["comments", true],
    ["texts", true],
    ["docs", true],
  ]);
});
