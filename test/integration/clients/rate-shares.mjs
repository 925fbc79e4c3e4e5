// One process of several that share a key: calls an embeddings API as fast as its limit allows, and prints its share of
// the limit whenever it changes. Arguments: the API's base URL, and that of PostgreSQL.
import pg from "pg";
import { createRateLimit } from "sheaf";
import { openaiEmbeddings, openaiFetch } from "sheaf/adapters/openai";
import { rateShares } from "sheaf/adapters/postgres";

const [baseURL, connectionString] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString, max: 1 });
pool.on("error", () => undefined); // An idle connection that the server cuts.
const shares = rateShares(pool, { limit: "the test's" });
await shares.createTable();
const embed = openaiEmbeddings(openaiFetch({ baseURL, apiKey: "none" }), {
  model: "tiny",
  rateLimit: createRateLimit({ shares }),
});

let share;
setInterval(() => {
  const now = embed.stats().rateLimit.share;
  if (now !== share) console.log(JSON.stringify({ share: (share = now) }));
}, 20);
for (let caller = 0; caller < 200; caller++) {
  void (async () => {
    for (let i = 0; ; i++) {
      const error = await embed(`${caller} ${i} ${"some words ".repeat(20)}`).then(() => undefined, (reason) => reason); // prettier-ignore
      if (error !== undefined) console.log(JSON.stringify({ error: String(error) }));
    }
  })();
}
