import assert from "node:assert/strict";
import { test } from "node:test";
import { TenantMix } from "../../dist/load/senders.js";

const drawn = (mix: TenantMix): number[] => Array.from({ length: 20_000 }, (_, index) => mix.tenantAt(index));

test("the same seed draws the same senders, another seed others", () => {
  const first = drawn(new TenantMix(9, 0.8, 1));
  assert.deepEqual(drawn(new TenantMix(9, 0.8, 1)), first);
  assert.notDeepEqual(drawn(new TenantMix(9, 0.8, 2)), first);
});

test("the flood has its share, and the tenants have equal parts of the rest", () => {
  const mix = new TenantMix(4, 0.6, 1);
  const counts = new Map<string, number>();
  for (const tenant of drawn(mix)) counts.set(mix.nameOf(tenant), (counts.get(mix.nameOf(tenant)) ?? 0) + 1);
  assert.deepEqual([...counts.keys()].sort(), ["flood", "tenant-1", "tenant-2", "tenant-3", "tenant-4"]);
  for (const [name, count] of counts) {
    const expected = name === "flood" ? 12_000 : 2000;
    assert.ok(Math.abs(count / expected - 1) < 0.1, `${name}: ${count}`);
  }
});

test("without a flood there is one name", () => {
  const mix = new TenantMix(3, 0, 1);
  assert.deepEqual([mix.names, mix.count], [["tenants"], 3]);
  assert.ok(drawn(mix).every((tenant) => tenant < 3));
});
