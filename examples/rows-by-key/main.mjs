// WHERE id IN (…) gives fewer rows than ids, in any order. A Map brings each row to the caller of its id.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createBatcher } from "sheaf";

// Stands for a database.
const table = [3, 1, 2].map((id) => ({ id, name: `user ${id}` }));
let queries = 0;
async function usersWhereIdIn(ids) {
  queries++;
  const rows = table.filter(({ id }) => ids.includes(id));
  await sleep(20);
  return rows;
}

// Who asks for a user while the query for that user is under way joins it.
const getUser = createBatcher(
  async (ids) => {
    const rows = await usersWhereIdIn(ids);
    return new Map(rows.map((row) => [row.id, row]));
  },
  { dedupeKey: (id) => id, dedupe: "running" },
);

const [first, missing, third] = await Promise.all([1, 99, 3].map((id) => getUser(id)));
console.log(first, missing, third);
assert.deepEqual([first?.name, missing, third?.name], ["user 1", undefined, "user 3"]);

const early = getUser(2);
await sleep(5);
const late = getUser(2);
assert.equal(await early, await late);
assert.equal(queries, 2);
console.log(`5 calls, ${queries} queries`);

// A caller who cannot go on without its row asks for an error instead.
const mustGetUser = createBatcher(async (ids) => new Map((await usersWhereIdIn(ids)).map((row) => [row.id, row])), {
  onMissing: "error",
  name: "users",
});
await assert.rejects(mustGetUser(99), { code: "MISSING_RESULT" });
