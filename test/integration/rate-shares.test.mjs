// Processes that share the rate limit of a key over a real PostgreSQL: who has which share, and what remains of one that dies.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { PGlite } from "@electric-sql/pglite";
import pg from "pg";
import postgres from "postgres";
import { rateShares, rateSharesTableSql } from "sheaf/adapters/postgres";
import { skipWithoutPostgres, startPostgres } from "./lib/postgres.mjs";
import { untilTrue } from "./lib/until.mjs";
import { fakeEmbeddingsApi } from "../fakes/limited-embeddings-api.mjs";

let server;
before(async () => {
  if (!skipWithoutPostgres) server = await startPostgres({ deadlock_timeout: "50ms" });
});
after(() => server?.close());

const drivers = {
  pg: (t) => {
    const pool = new pg.Pool({ connectionString: server.url });
    t.after(() => pool.end());
    return { client: pool, query: async (text) => (await pool.query(text)).rows };
  },
  "postgres.js": (t) => {
    const sql = postgres(server.url, { onnotice: () => undefined });
    t.after(() => sql.end());
    return { client: sql, query: async (text) => [...(await sql.unsafe(text))] };
  },
  PGlite: (t) => {
    const db = new PGlite();
    t.after(() => db.close());
    return { client: db, query: async (text) => (await db.query(text)).rows };
  },
};

const live = (part) => ({ live: part, bulk: 0 });

for (const [name, open] of Object.entries(drivers)) {
  describe(name, { skip: name !== "PGlite" && skipWithoutPostgres }, () => {
    test("a renewal gives the demands of the others of that limit, and an expired one is deleted", async (t) => {
      const { client, query } = open(t);
      const table = `shares_${name.replace(".", "_").toLowerCase()}`;
      const [a, b] = [rateShares(client, { limit: "a", table }), rateShares(client, { limit: "b", table })];
      await Promise.all([a.createTable(), b.createTable()]);
      assert.deepEqual(await a.renew("one", live(0.25), 60_000), []);
      assert.deepEqual(await b.renew("one", live(1), 60_000), []);
      assert.deepEqual(await a.renew("two", { live: 0.5, bulk: 0.75 }, 60_000), [live(0.25)]);
      assert.deepEqual(await a.renew("one", live(0.5), 1), [{ live: 0.5, bulk: 0.75 }]);
      await sleep(10);
      assert.deepEqual(await a.renew("two", live(1), 60_000), [], "expired");
      const rows = await query(`SELECT limit_name || ' ' || member AS row FROM ${table} ORDER BY 1`);
      assert.deepEqual(rows.map(({ row }) => row), ["a two", "b one"]); // prettier-ignore
      await a.leave("two");
      assert.deepEqual(await a.renew("one", live(0), 60_000), []);
    });

    test("processes that have all expired and renew at once do not wait for each other", async (t) => {
      const { client, query } = open(t);
      const table = `crowd_${name.replace(".", "_").toLowerCase()}`;
      await query(rateSharesTableSql({ table }));
      const crowd = Array.from({ length: 8 }, () => rateShares(client, { limit: "crowd", table }));
      for (let round = 0; round < 20; round++) {
        await Promise.all(crowd.map((shares, i) => shares.renew(`member ${i}`, live(1), 1)));
        await sleep(2);
      }
      await Promise.all(crowd.map((shares, i) => shares.renew(`member ${i}`, live(1), 60_000)));
      assert.equal((await crowd[0].renew("member 0", live(1), 60_000)).length, 7);
    });
  });
}

test("a wrong option or client is refused", () => {
  const client = { query: async () => ({ rows: [] }) };
  assert.throws(() => rateShares(client, {}), /limit must be a non-empty string, got undefined/);
  assert.throws(() => rateShares(client, { limit: "a", tabel: "x" }), /unknown option tabel; did you mean table\?/);
  assert.throws(() => rateShares({}, { limit: "a" }), /client must be a Pool or Client of pg/);
});

test(
  "two processes have half of the limit each; the one that is left after kill -9 has all of it",
  { skip: skipWithoutPostgres },
  async (t) => {
    const api = fakeEmbeddingsApi({ tokensPerMinute: 60_000, requestsPerMinute: 600, shape: "10s", latencyMs: 20 });
    const http = createServer(async (request, response) => {
      const body = await new Response(request).text();
      const reply = await api.fetch(`http://api.invalid${request.url}`, { method: "POST", body });
      response.writeHead(reply.status, Object.fromEntries(reply.headers)).end(await reply.text());
    });
    await once(http.listen(0, "127.0.0.1"), "listening");
    t.after(() => http.close().closeAllConnections());
    const program = fileURLToPath(new URL("clients/rate-shares.mjs", import.meta.url));
    const errors = [];
    const start = () => {
      const baseURL = `http://127.0.0.1:${http.address().port}/v1`;
      const child = spawn(process.execPath, [program, baseURL, server.url], { stdio: ["ignore", "pipe", "inherit"] });
      t.after(() => child.kill("SIGKILL"));
      const state = { child, share: undefined };
      createInterface({ input: child.stdout }).on("line", (line) => {
        const said = JSON.parse(line);
        if (said.share !== undefined) state.share = said.share;
        if (said.error !== undefined) errors.push(said.error);
      });
      return state;
    };
    const [one, two] = [start(), start()];
    await untilTrue(() => one.share === 0.5 && two.share === 0.5);
    two.child.kill("SIGKILL");
    await untilTrue(() => one.share === 1);
    assert.deepEqual(errors, []);
  },
);
