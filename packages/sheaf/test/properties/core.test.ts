import { test } from "node:test";
import fc from "fast-check";
import { scenarios } from "./scenario.js";
import { simulate } from "./simulate.js";

// Fixed, so that a red run is red for everybody; `npm run prove -- simulations` tries 100,000 others, in which every pair of features meets every second event.
const seed = 20_260_101;

test("in 120 random simulations every call settles once, with its own result, within every limit", async (t) => {
  t.mock.method(console, "warn", () => {}); // hostile policies and stuck runs cause warnings, rightly
  const play = fc.asyncProperty(scenarios, async (scenario) => void (await simulate(scenario)));
  await fc.assert(play, { numRuns: 120, seed });
});

test("items that a run puts back after its batcher has closed count in no batch, also where it closes as the run times out", async () => {
  for (const some of fc.sample(scenarios, { numRuns: 30, seed })) {
    const run = { ...some.run, fixedMs: 10, failureRate: 1, putBackRate: 1, heedsSignal: false };
    const close = { afterAction: 0, graceMs: 3 };
    await simulate({ ...some, policy: "greedy", runTimeoutMs: 3, onBatchError: "fail", run, close });
  }
});
