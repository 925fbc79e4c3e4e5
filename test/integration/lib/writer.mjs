// A process that inserts rows FIRST … FIRST + COUNT and, told to end by SIGTERM, closes its batcher first.
import pg from "pg";
import { insertBatcher } from "sheaf/adapters/postgres";

const [url, first, count] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url });
const insert = insertBatcher(pool, {
  table: "items",
  maxBatchSize: 100,
  concurrency: 1,
  maxQueueSize: 100_000,
  returning: [],
});
let stored = 0;
let failed = 0;
process.once("SIGTERM", async () => {
  await insert.close();
  await pool.end();
  console.log(`stored ${stored} failed ${failed}`);
});
for (let id = Number(first); id < Number(first) + Number(count); id++) {
  insert({ id }).then(
    () => {
      if (++stored % 100 === 0) console.log(`confirmed ${stored}`);
    },
    () => failed++,
  );
}
console.log("queued");
