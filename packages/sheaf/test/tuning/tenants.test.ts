import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate, type SimulationOptions } from "../../dist/tuning/index.js";

const customers = { name: "customers", count: 10, arrivals: { pattern: "poisson" as const, ratePerS: 30 } };
const flood = { name: "flood", arrivals: { pattern: "poisson" as const, ratePerS: 5000 } };
const shared: SimulationOptions = {
  cost: { fixedMs: 10, perItemMs: 0.3 },
  concurrency: 1,
  maxQueueSize: 200,
  tenantKey: "none",
  tenants: [customers, flood],
  items: 10_000,
};

test("each tenant calls at its own rate, and its figures are its own", async () => {
  const { tenants, items } = await simulate({ ...shared, warmUp: 0 });
  const { customers: ofCustomers, flood: ofFlood } = tenants!;
  const calls = ({ ok, rejected }: { ok: number; rejected: number }) => ok + rejected;
  const share = calls(ofCustomers!.items) / calls(items);
  assert.ok(Math.abs(share - 300 / 5300) < 0.01, `share of the customers: ${share}`);
  assert.equal(ofCustomers!.items.ok + ofFlood!.items.ok, items.ok);
  assert.ok(ofCustomers!.items.rejected > 0, "the flood fills the queue for all");
  assert.ok(ofCustomers!.latencyMsBySecond.length >= 1);
  const endsBySecond = ofCustomers!.itemsBySecond;
  assert.equal(endsBySecond.length, ofCustomers!.latencyMsBySecond.length);
  for (const end of ["ok", "rejected"] as const)
    assert.equal(endsBySecond.reduce((sum, ends) => sum + ends[end], 0), ofCustomers!.items[end]); // prettier-ignore
});

test("the same seed gives the same figures, and one more tenant changes no other's calls", async () => {
  const once = await simulate(shared);
  assert.deepEqual((await simulate(shared)).tenants, once.tenants);
  // Room and slots for all: a call's latency is its own run, and calls a second tell when each was made.
  const bySecond = async (tenants: SimulationOptions["tenants"], items: number): Promise<number[]> => {
    const cost = (_: number, atMs: number): number => 1 + (atMs % 1);
    const free = { ...shared, cost, tenants, items, warmUp: 0, maxQueueSize: Infinity, concurrency: Infinity };
    const result = await simulate({ ...free, maxBatchSize: 1 });
    return result.tenants!["customers"]!.latencyMsBySecond.slice(0, 1).map(({ mean }) => mean);
  };
  assert.deepEqual(await bySecond([customers, flood], 10_000), await bySecond([customers], 600));
});

test("a tenant's priority is that of its calls", async () => {
  const { byPriority } = await simulate({ ...shared, tenants: [customers, { ...flood, priority: "bulk" }] });
  assert.deepEqual(Object.keys(byPriority).sort(), ["bulk", "interactive"]);
});

test("fairKey keeps the flood from the others", async () => {
  const { tenants } = await simulate({ ...shared, tenantKey: undefined });
  assert.equal(tenants!["customers"]!.items.rejected, 0);
});

test("groupKey keeps the tenants' items apart", async () => {
  const together = await simulate({ ...shared, items: 2000, tenants: [{ ...customers, count: 50 }] });
  const apart = await simulate({
    ...shared,
    items: 2000,
    tenants: [{ ...customers, count: 50 }],
    tenantKey: "groupKey",
  });
  assert.ok(apart.meanBatchSize < together.meanBatchSize, `${apart.meanBatchSize}, ${together.meanBatchSize}`);
});

test("tenants that make no sense are refused with what they were", async () => {
  const closed = { pattern: "closed", clients: 3 };
  for (const [options, message] of [
    [{ tenants: [] }, /tenants must be an array of \{ name, count, arrivals, priority \}, got an array of 0/],
    [{ tenants: [{ ...customers, count: 0 }] }, /tenants\[0\]\.count must be an integer >= 1, got 0/],
    [{ tenants: [{ ...customers, name: "" }] }, /tenants\[0\]\.name must be a non-empty string/],
    [{ tenants: [{ ...customers, arrivals: closed }] }, /pattern of arrivals must be/],
    [{ tenants: [{ name: "a" }] }, /tenants\[0\]\.arrivals must be \{ pattern, … \}, got undefined/],
    [{ tenants: [{ ...customers, rate: 3 }] }, /unknown option tenants\[0\]\.rate/],
    [{ tenants: [customers, customers] }, /every name in tenants must be unique/],
    [{ tenants: [{ ...customers, count: 1e6 }] }, /at most 100000 tenants, got 1000000/],
    [{ tenants: [customers], arrivals: flood.arrivals }, /tenants and arrivals cannot be combined/],
    [{ tenantKey: "name" }, /tenantKey must be "fairKey" or "groupKey" or "none", got "name"/],
    [{ tenants: undefined }, /arrivals must be \{ pattern, … \}, got undefined/],
  ] as const)
    await assert.rejects(simulate({ ...shared, ...options } as never), message);
});
