// The service that asks: 300 visitors look at a product at the same time, each page needs one price.
import assert from "node:assert/strict";
import { batchClient } from "sheaf/adapters/http";
import { pricesService } from "./prices.mjs";

const { app, seen } = pricesService();
const url = await app.listen({ port: 0, host: "127.0.0.1" });
const visits = Array.from({ length: 300 }, (_, i) => i % 120);

async function timed(name, priceOf) {
  const startedAtMs = performance.now();
  const prices = await Promise.all(visits.map((sku) => priceOf({ sku })));
  const ms = (performance.now() - startedAtMs).toFixed(0);
  prices.forEach(({ sku, cents }, i) => assert.deepEqual([sku, cents], [visits[i], 100 + 7 * visits[i]]));
  console.log(`${name}: ${visits.length} prices in ${ms} ms`);
}

await timed("one request a price ", async (item) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/price`, { method: "POST", headers, body: JSON.stringify(item) });
  return response.json();
});

// Called exactly as before. dedupeKey: who asks for the same product at the same time shares the answer.
const priceOf = batchClient(`${url}/prices`, { maxBatchSize: 100, timeoutMs: 1000, dedupeKey: ({ sku }) => sku });
await timed("sheaf, in batches   ", priceOf);
console.log(`the price service saw ${seen.single} requests, then ${seen.batch}`);
assert.deepEqual(seen, { single: 300, batch: 2 }); // 120 products, 100 a request

// One caller's failure is its own, with the status that the service gave it.
const [good, bad] = await Promise.allSettled([priceOf({ sku: 1 }), priceOf({ sku: -1 })]);
assert.equal(good.value.cents, 107);
assert.deepEqual([bad.reason.status, bad.reason.code], [404, "NO_PRODUCT"]);
console.log(`and for product -1: ${bad.reason.status} ${bad.reason.message}`);

await priceOf.close();
await app.close();
