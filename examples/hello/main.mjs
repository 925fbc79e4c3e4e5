// Callers ask for one user each; what they ask for at the same time is one query.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createBatcher } from "sheaf";

// Stands for your database, API or model: a round trip costs 20 ms, however many ids it carries.
const getUser = createBatcher(
  async (ids) => {
    console.log(`one query for ${ids.join(", ")}`);
    await sleep(20);
    return ids.map((id) => (id > 0 ? { id, name: `user ${id}` } : new Error(`there is no user ${id}`)));
  },
  { maxBatchSize: 100 },
);

// A lone call goes at once.
console.log(await getUser(1));

// Calls at the same time, from anywhere, share a query; each gets its own user.
const users = await Promise.all([2, 3, 4].map((id) => getUser(id)));
assert.deepEqual(
  users.map(({ id }) => id),
  [2, 3, 4],
);

// One that fails is one caller's failure.
const [good, bad] = await Promise.allSettled([getUser(5), getUser(-1)]);
assert.equal(good.status, "fulfilled");
console.log(good.value, bad.reason.message);

const { items, batches } = getUser.stats();
assert.equal(batches, 3);
console.log(`${items.ok + items.error} calls, ${batches} queries`);
