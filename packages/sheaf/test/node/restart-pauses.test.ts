import assert from "node:assert/strict";
import { test } from "node:test";
import { RestartPauses } from "../../dist/node/pool/restart-pauses.js";
import { manualClock } from "../../dist/testing/index.js";

test("pauses double from 100 ms to 30 s; the sixth crash is past the limit, and 60 s of peace forget them", () => {
  const clock = manualClock();
  const pauses = new RestartPauses(clock);
  const crash = (): number => {
    const pauseMs = pauses.crashed();
    clock.advance(pauseMs);
    return pauseMs;
  };
  assert.deepEqual(Array.from({ length: 5 }, crash), [100, 200, 400, 800, 1600]);
  assert.equal(pauses.isPastLimit, false);
  assert.deepEqual(Array.from({ length: 6 }, crash), [3200, 6400, 12_800, 25_600, 30_000, 30_000]);
  assert.equal(pauses.isPastLimit, true);
  // A pause does not count as peace: a model that crashes once in each life of 59 s goes on pausing.
  clock.advance(59_999);
  assert.equal(crash(), 30_000);
  clock.advance(60_000);
  assert.equal(crash(), 100);
  assert.equal(pauses.isPastLimit, false);
});
