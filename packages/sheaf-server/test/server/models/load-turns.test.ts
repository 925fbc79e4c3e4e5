import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import { LoadTurns } from "../../../dist/server/models/repository/load-turns.js";

/** Asks for turns by name, and keeps a list of those that began. */
function asking(turns: LoadTurns): {
  readonly begun: string[];
  readonly ends: Record<string, () => void>;
  ask(name: string, isReplacement?: boolean): void;
} {
  const begun: string[] = [];
  const ends: Record<string, () => void> = {};
  const ask = (name: string, isReplacement = false): void => {
    void turns.next({ isReplacement }).then((end) => {
      begun.push(name);
      ends[name] = end;
    });
  };
  return { begun, ends, ask };
}

test("four first loads run at once, a replacement runs alone, and none overtakes another", async () => {
  const { begun, ends, ask } = asking(new LoadTurns());
  for (const name of ["a", "b", "c", "d", "e"]) ask(name);
  ask("replacing", true);
  ask("f");
  await turn();
  assert.deepEqual(begun, ["a", "b", "c", "d"]);
  ends["a"]!();
  await turn();
  assert.deepEqual(begun.slice(4), ["e"]);
  for (const name of ["a", "b", "c", "d"]) ends[name]!();
  await turn();
  assert.deepEqual(begun.slice(5), [], "the replacement waits for the last, and f for the replacement");
  ends["e"]!();
  await turn();
  assert.deepEqual(begun.slice(5), ["replacing"]);
  ends["replacing"]!();
  await turn();
  assert.deepEqual(begun.slice(6), ["f"]);
});

test("loads that never end keep others waiting for 30 s, and no longer", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { begun, ends, ask } = asking(new LoadTurns());
  for (const name of ["a", "b", "c", "d"]) ask(name);
  ask("replacing", true);
  ask("e", true);
  await turn();
  t.mock.timers.tick(29_999);
  await turn();
  assert.deepEqual(begun, ["a", "b", "c", "d"]);
  t.mock.timers.tick(1);
  await turn();
  assert.deepEqual(begun.slice(4), ["replacing"]);
  // What was given up frees nothing when it ends after all.
  ends["a"]!();
  await turn();
  assert.deepEqual(begun.slice(5), []);
  t.mock.timers.tick(30_000);
  await turn();
  assert.deepEqual(begun.slice(5), ["e"]);
});
