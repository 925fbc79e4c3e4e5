// Requests that each write one row share statements, and every request gets its own row or its own error. What the batches
// did is logged into the same database. Runs in memory on PGlite; with DATABASE_URL on that PostgreSQL, in a schema of its own.
import assert from "node:assert/strict";
import { insertBatcher, lookupBatcher, upsertBatcher } from "sheaf/adapters/postgres";
import { batchLog } from "sheaf/adapters/batch-log";
import { openDatabase } from "./database.mjs";

const schema = "sheaf_example";
const { client, run, close } = await openDatabase();
await run(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
await run(`CREATE SCHEMA ${schema}`);
await run(
  `CREATE TABLE ${schema}.orders (id serial PRIMARY KEY, customer text NOT NULL, amount numeric(10, 2) CHECK (amount > 0))`,
);
await run(`CREATE TABLE ${schema}.customers (name text PRIMARY KEY, visits int NOT NULL)`);

const insertOrder = insertBatcher(client, { schema, table: "orders" });
const log = batchLog(client, { schema });
await log.createTable();
log.watch(insertOrder, { service: "orders", maxBatchSize: 500 });

// 1,000 requests at the same time, each for one order. Two of them are wrong.
const requests = Array.from({ length: 1000 }, (_, i) => ({
  customer: `customer ${i % 50}`,
  amount: i === 400 ? -1 : 10 + i / 100,
}));
requests[700] = { ...requests[700], customer: null };
const answers = await Promise.allSettled(requests.map((order) => insertOrder(order)));
answers.forEach(({ value, reason }, i) => {
  if (i === 400)
    assert.equal(reason.code, "23514"); // check_violation
  else if (i === 700)
    assert.equal(reason.code, "23502"); // not_null_violation
  else assert.equal(value.customer, requests[i].customer);
});
const { batches, bisectRuns } = insertOrder.stats();
assert.ok(batches + bisectRuns < 100);
console.log(`998 orders written, 2 refused, ${batches + bisectRuns} statements`);

// Several visits of one customer that wait together: each is written, in order.
const visit = upsertBatcher(client, { schema, table: "customers", key: ["name"] });
const visits = await Promise.all([1, 2, 3].map((visits) => visit({ name: "Ada", visits })));
assert.deepEqual(visits.at(-1), { name: "Ada", visits: 3 });

const findCustomer = lookupBatcher(client, { schema, table: "customers", key: "name" });
assert.deepEqual(await Promise.all([findCustomer("Ada"), findCustomer("Bob")]), [
  { name: "Ada", visits: 3 },
  undefined,
]);
console.log("Ada was here 3 times, Bob never");

await log.flush();
const [hour] = await log.hourlyReport();
assert.equal(hour.service, "orders");
console.log(`this hour: ${hour.items} items in ${hour.batches} batches of the service ${hour.service}`);

await Promise.all([insertOrder, visit, findCustomer, log].map((one) => one.close()));
await run(`DROP SCHEMA ${schema} CASCADE`);
await close();
