import assert from "node:assert/strict";
import { test } from "node:test";
import { oddPhrases } from "../scripts/lib/prose.mjs";

test("an odd phrase is found with its line, also over the end of a line", () => {
  const text = ["/**", " * Fine so far.", " * What is no", " * number can", " * not be sent.", " */"].join("\n");
  assert.deepEqual(
    oddPhrases(text).map(({ line, phrase }) => `${line} ${phrase}`),
    ["4 can not", "3 is no number"],
  );
});

for (const bad of [
  "It can not be read.",
  "Undefined is no key.",
  "That is yours to mend.",
  "It begins anew.",
  "It waits for ever.",
  "The queue hears of it.",
  "The caller is told of it.",
  "There was no word of the item.",
  "It failed without a word.",
  "Whoever waits gets it.",
  "It is nobody's crash.",
  "Nobody waits for it any more.",
  "It has need of one.",
  "No result is to be had.",
  "It lets go of the port.",
])
  test(`refused: ${bad}`, () => assert.equal(oddPhrases(bad).length, 1));

for (const good of [
  "There is no such file.",
  "There is no queue.",
  "It is no longer there.",
  "That is no reason to stop, and no faster.",
  "Is there no queue?",
  "It cannot be read, and nobody waits.",
  "Recommended: amend the message.",
])
  test(`allowed: ${good}`, () => assert.deepEqual(oddPhrases(good), []));
