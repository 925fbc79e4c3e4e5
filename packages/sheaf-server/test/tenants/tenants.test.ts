import assert from "node:assert/strict";
import { test } from "node:test";
import { Meter } from "../../dist/tenants/meter.js";
import { Tenants, type Tenant } from "../../dist/tenants/tenants.js";

const one = (): number => 1;

function serve(tenants: Tenants, tenant: Tenant, items: number): void {
  tenants.entered(tenant, items);
  tenants.count(tenant, "ok", items);
  tenants.left(items);
}

test("a rate lets a second's worth in at once, then says when the next item may come", () => {
  const meter = new Meter({ itemsPerSecond: 10 });
  for (let i = 0; i < 10; i++) {
    assert.equal(meter.overBound(1, one, 0), undefined, String(i));
    meter.enter(1, one, 0);
  }
  const over = meter.overBound(1, one, 0)!;
  assert.match(over.reason, /10 items a second/);
  assert.ok(over.waitMs > 0 && over.waitMs <= 101, String(over.waitMs));
  assert.equal(meter.overBound(1, one, over.waitMs), undefined);
  assert.notEqual(meter.overBound(1, one, over.waitMs - 1), undefined);
});

test("over any time no more comes in than the rate and one request, also where a request is larger than a second's worth", () => {
  const meter = new Meter({ itemsPerSecond: 10, weightPerSecond: 100 });
  let items = 0;
  let weight = 0;
  for (let atMs = 0; atMs < 60_000; atMs += 7) {
    if (meter.overBound(30, one, atMs) !== undefined) continue;
    meter.enter(30, () => 20, atMs);
    items += 30;
    weight += 20;
  }
  // Less than the rate by the 7 ms that a request comes late.
  assert.ok(items <= 600 + 30 && items >= 570, `${items} items`);
  assert.ok(weight <= 6000 + 100, `${weight}`);
});

test("items in flight have a bound; more than that come in when nothing else is there", () => {
  const meter = new Meter({ itemsInFlight: 5 });
  assert.equal(meter.overBound(8, one, 0), undefined);
  meter.enter(8, one, 0);
  assert.match(meter.overBound(1, one, 0)!.reason, /at most 5 items in flight, 8 are/);
  meter.leave(4, 20);
  assert.equal(meter.overBound(1, one, 0), undefined);
  assert.notEqual(meter.overBound(2, one, 0), undefined);
});

test("bulk in flight leaves live items what they lately needed, at least a tenth; both together keep to the bound", () => {
  const meter = new Meter({ itemsInFlight: 200 });
  const bulkLists = (): number => {
    let lists = 0;
    for (; meter.overBound(25, one, 0, true) === undefined; lists++) meter.enter(25, one, 0, true);
    return lists;
  };
  assert.equal(bulkLists(), 7, "175 of the 180 that bulk may have");
  assert.match(meter.overBound(25, one, 0, true)!.reason, /at most 180 bulk items in flight/);
  for (let i = 0; i < 25; i++) {
    assert.equal(meter.overBound(1, one, 0), undefined, `live item ${i}`);
    meter.enter(1, one, 0);
  }
  assert.match(meter.overBound(1, one, 0)!.reason, /at most 200 items in flight, 200 are/);
  meter.leave(25, 10);
  meter.leave(175, 10, true);
  // Live items have needed 120 of late.
  meter.enter(120, one, 0);
  meter.leave(120, 10);
  assert.equal(bulkLists(), 3);
  assert.equal(meter.overBound(120, one, 0), undefined, "live items find what they needed");
  // Half as much counts a minute later, and bulk alone may have the rest.
  assert.equal(meter.overBound(50, one, 60_000, true), undefined);
});

test("a bulk list that is more than bulk's part comes in when no other bulk is there, and takes nothing from live items", () => {
  const meter = new Meter({ itemsInFlight: 10, itemsPerSecond: 10 });
  assert.equal(meter.overBound(50, one, 0, true), undefined);
  meter.enter(50, one, 0, true);
  assert.notEqual(meter.overBound(1, one, 0, true), undefined);
  assert.equal(meter.overBound(1, one, 0), undefined);
  meter.enter(1, one, 0);
  assert.notEqual(meter.overBound(1, one, 0), undefined);
});

test("a second's worth is for live items first: with a bulk backlog none is refused for it, and bulk gets the rest", () => {
  for (const size of [1, 5, 30]) {
    const meter = new Meter({ itemsPerSecond: 10 });
    let bulk = 0;
    let live = 0;
    for (let atMs = 0; atMs < 60_000; atMs += 5) {
      if (atMs % 250 === 0) {
        assert.equal(meter.overBound(1, one, atMs), undefined, `live item at ${atMs}, bulk lists of ${size}`);
        meter.enter(1, one, atMs);
        live++;
      }
      if (meter.overBound(size, one, atMs, true) !== undefined) continue;
      meter.enter(size, one, atMs, true);
      bulk += size;
    }
    assert.ok(live + bulk <= 610 + size && live + bulk >= 590 - size, `${live} live and ${bulk} bulk`);
  }
});

test("figures show 20 tenants and one sum of the others, and together every item, also of tenants that come and go", () => {
  const tenants = new Tenants();
  let counted = 0;
  let refused = 0;
  for (let i = 0; i < 5000; i++) {
    const tenant = tenants.of(`t${(i * i) % 701}`, 1, {});
    const items = 1 + (i % 13);
    if (i % 3 === 0) {
      tenants.refused(tenant, items);
      refused += items;
    } else serve(tenants, tenant, items);
    counted += items;
  }
  const { busiest, others, keptOut } = tenants.figures();
  assert.equal(keptOut, refused);
  assert.equal(busiest.length, 20);
  const sum = [...busiest, others].flatMap(({ items }) => Object.values(items)).reduce((a, b) => a + b);
  assert.equal(sum, counted);
});

test("a tenant that is clearly busier than one of those shown takes its place; nobody is named as the sum", () => {
  const tenants = new Tenants();
  for (let i = 0; i < 20; i++) serve(tenants, tenants.of(`small ${i}`, 1, {}), 10);
  const shown = (): string[] => tenants.figures().busiest.map(({ name }) => name);
  const large = tenants.of("large", 1, {});
  serve(tenants, large, 11);
  assert.ok(!shown().includes("large"));
  serve(tenants, large, 100);
  assert.ok(shown().includes("large"));
  assert.equal(shown().length, 20);
  serve(tenants, tenants.of("(others)", 1, {}), 1e6);
  assert.ok(!shown().includes("(others)"));
});

test("tenants that are idle are forgotten, those with items in flight or a bucket to fill are not", () => {
  const tenants = new Tenants();
  const busy = tenants.of("busy", 1, {});
  busy.meter.enter(1, one, performance.now());
  const limited = tenants.of("limited", 1, { itemsPerSecond: 0.001 });
  limited.meter.enter(1, one, performance.now());
  const idle = tenants.of("idle", 1, {});
  for (let i = 0; i < 3000; i++) tenants.of(`t${i}`, 1, {});
  assert.equal(tenants.of("busy", 1, {}), busy);
  assert.equal(tenants.of("limited", 1, { itemsPerSecond: 0.001 }), limited);
  assert.notEqual(tenants.of("idle", 1, {}), idle);
});
