import assert from "node:assert/strict";
import { test } from "node:test";
import { shortageOf, usableCores } from "../../dist/node/pool/cores.js";

test("a container's quota of CPU counts, not the machine's cores", () => {
  assert.equal(usableCores(64, "150000 100000\n"), 2);
  assert.equal(usableCores(64, "50000 100000\n"), 1);
  assert.equal(usableCores(4, "800000 100000\n"), 4);
  assert.equal(usableCores(64, "max 100000\n"), 64);
  assert.equal(usableCores(64, undefined), 64);
  assert.equal(usableCores(64, "nonsense"), 64);
});

test("cores are short where the process uses most of its own, not where many are idle", () => {
  assert.equal(shortageOf(2, 0.39, 0.3), 0);
  assert.equal(shortageOf(2, 1.2, 0.3), 1);
  assert.equal(shortageOf(1, 0.2, 0.2), 0, "one core, hardly used");
  assert.equal(shortageOf(16, 8, 0.3), 0, "eight idle cores");
  assert.equal(shortageOf(16, 15.5, 0.3), 1);
  const half = shortageOf(2, 0.6, 0.4);
  assert.ok(half > 0 && half < 1, `${half}`);
});

test("a thread that answers all the time is short of its core, however many others are idle", () => {
  assert.equal(shortageOf(16, 1.5, 0.95), 1);
  assert.equal(shortageOf(16, 1.5, 0.5), 0);
});
