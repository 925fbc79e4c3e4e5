import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageAges } from "../../../dist/adapters/nats/worker/message-ages.js";

const longestMs = 60_000;
const serverIsAheadMs = 3_600_000;

test("an age is found though the clocks differ by an hour", () => {
  const ages = new MessageAges(longestMs);
  assert.equal(ages.ageMs(1000 + serverIsAheadMs, 1000), 0);
  assert.equal(ages.ageMs(1000 + serverIsAheadMs, 3500), 2500);
  assert.equal(ages.ageMs(4000 + serverIsAheadMs, 4000), 0);
});

test("a server's clock that is set by hours, on or back, makes nothing older than it is", () => {
  const ages = new MessageAges(longestMs);
  for (const [server, here] of [
    [0, 0],
    [7_200_000, 10],
    [7_200_010, 20],
    [30, 30],
    [40, 40],
  ] as const)
    assert.equal(ages.ageMs(server, here), 0, `stored at ${server}, seen at ${here}`);
  assert.equal(ages.ageMs(50, 1050), 1000, "and ages are told again");
});

test("a server's clock that is set back by less than an item may wait is believed after 20 s at most", () => {
  const ages = new MessageAges(longestMs);
  assert.equal(ages.ageMs(100_000, 100_000), 0);
  assert.equal(ages.ageMs(70_001, 100_001), 30_000, "not to be told from an item that waited");
  for (let here = 101_000; here < 120_000; here += 1000) ages.ageMs(here - 30_000, here);
  assert.equal(ages.ageMs(90_000, 120_000), 0);
});
