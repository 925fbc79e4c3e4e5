import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { insertBatcher, upsertBatcher } from "../../../../packages/sheaf/dist/adapters/postgres/index.js";
import { disturb } from "./disturb.mjs";
import { Ledger } from "./ledger.mjs";
import { RowsSent, VersionsSent } from "./rows-sent.mjs";
import { standstills } from "./standstill.mjs";
import { trySignal } from "./try-signal.mjs";

const runTimeoutMs = 3000;
const callersAtMost = 80;
const hungAfterMs = 40_000;
/** No unique key on rows: one that is written twice shall be there twice. Some rows take long, so that they are cut. */
const tablesSql = `
CREATE TABLE rows (id bigint, number int CHECK (number >= 0), note text);
CREATE TABLE versions (key int PRIMARY KEY, version bigint CHECK (version >= 0));
CREATE FUNCTION take_long() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END';
CREATE TRIGGER slow BEFORE INSERT ON rows FOR EACH ROW WHEN (NEW.id % 30 = 0) EXECUTE FUNCTION take_long();
CREATE TRIGGER slow BEFORE INSERT ON versions FOR EACH ROW WHEN (NEW.version % 30 = 0) EXECUTE FUNCTION take_long()`;

/** Why this part cannot run here, or undefined. Where CI=true that is an error. */
export async function whyNoPostgres() {
  const integration = new URL("../../../../test/integration/", import.meta.url);
  if (!existsSync(new URL("node_modules/pg", integration))) {
    const why = "integration/node_modules has no pg (cd integration && npm ci): no chaos on PostgreSQL";
    if (process.env.CI === "true") throw new Error(why);
    console.error(why);
    return why;
  }
  const { skipWithoutPostgres } = await import(new URL("lib/postgres.mjs", integration).href);
  return skipWithoutPostgres || undefined;
}

/**
 * Inserts and upserts on a PostgreSQL that is killed, stopped and cut off, some of them poisoned. What callers got
 * is compared with the tables at the end.
 */
export async function chaosOnPostgres({ seconds, draw }) {
  const pg = createRequire(new URL("../../../../test/integration/package.json", import.meta.url))("pg");
  const { startPostgres } = await import("../../../../test/integration/lib/postgres.mjs");
  const server = await startPostgres();
  const pool = new pg.Pool({ connectionString: server.url, application_name: "chaos", max: 6 });
  pool.on("error", () => undefined); // An idle connection that was cut.
  await pool.query(tablesSql);
  const options = { maxBatchSize: 50, concurrency: 3, maxQueueSize: 150, runTimeoutMs };
  const insert = insertBatcher(pool, { table: "rows", ...options });
  const upsert = upsertBatcher(pool, { table: "versions", key: ["key"], ...options });

  const ledger = new Ledger();
  const faults = {};
  const disturbance = { endedAtMs: -Infinity, isUnderWay: false };
  const rows = new RowsSent(draw);
  const versions = new VersionsSent(draw);
  let open = 0;
  const send = () => {
    const [batcher, sent] = draw.chance(0.6) ? [insert, rows] : [upsert, versions];
    const call = sent.next();
    const callOptions = {};
    if (draw.chance(0.1)) callOptions.timeoutMs = Math.ceil(draw.between(1, 1500));
    const reason = new Error("the caller went away");
    if (draw.chance(0.05)) {
      const controller = new AbortController();
      callOptions.signal = controller.signal;
      setTimeout(() => controller.abort(reason), draw.between(0, 100));
    }
    const sentAtMs = performance.now();
    const ended = ledger.send(`${batcher.name} ${JSON.stringify(call.row)}`, hungAfterMs);
    open++;
    batcher(call.row, callOptions)
      .then(
        (stored) => {
          call.fate = "stored";
          if (call.isPoison) ended("wrong", "a row that the table refuses was confirmed");
          else if (sent.isOwn(call, stored)) ended("ok");
          else ended("wrong", `another's row: ${JSON.stringify(stored)}`);
        },
        (error) => {
          const isCut = disturbance.isUnderWay || sentAtMs < disturbance.endedAtMs + 1000;
          const stoodStill = standstills().overAtMs > sentAtMs;
          const [outcome, fate] = outcomeOf(error, {
            ...callOptions,
            reason,
            isPoison: call.isPoison,
            isCut,
            stoodStill,
          });
          call.fate = fate;
          ended(outcome, String(error?.stack ?? error));
        },
      )
      .finally(() => open--);
  };

  let isOver = false;
  const load = async () => {
    while (!isOver) {
      for (let i = draw.below(8); i > 0 && open < callersAtMost; i--) send();
      if (draw.chance(0.002)) for (let i = 0; i < 400; i++) send();
      await sleep(draw.between(0, 60));
    }
  };
  const disturbances = {
    "kill -9 of the database, and a start": async () => {
      await server.stop("SIGKILL");
      await sleep(draw.between(0, 1000));
      await server.start();
    },
    "SIGTERM of the database, and a start": async () => {
      await server.stop("SIGINT");
      await server.start();
    },
    "connections cut": () => cutConnections(pg, server.url),
    "the database stopped for a while": async () => {
      const pids = processesOf(server.pid);
      for (const pid of pids) trySignal(pid, "SIGSTOP");
      await sleep(draw.between(100, 1.5 * runTimeoutMs));
      for (const pid of pids) trySignal(pid, "SIGCONT");
    },
  };
  const marked = Object.entries(disturbances).map(([what, strike]) => [
    what,
    async () => {
      disturbance.isUnderWay = true;
      await strike();
      disturbance.isUnderWay = false;
      disturbance.endedAtMs = performance.now();
    },
  ]);
  const names = [...Object.keys(disturbances), "connections cut"]; // twice as often as each other
  const both = Promise.all([
    load(),
    disturb({ draw, disturbances: Object.fromEntries(marked), names, faults, isOver: () => isOver }),
  ]);
  await Promise.race([both, sleep(1000 * seconds)]);
  isOver = true;
  await both;
  while (ledger.open > 0) await sleep(50);
  await Promise.all([insert.close(), upsert.close()]);
  // Statements whose callers have all left hold a connection until they have ended.
  await pool.end();
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  rows.compare((await client.query("SELECT * FROM rows")).rows, ledger);
  versions.compare((await client.query("SELECT * FROM versions")).rows, ledger);
  await client.end();
  await server.close();
  return { name: "rows in PostgreSQL", ledger, faults };
}

/** What a caller got, as an outcome of the ledger, and what its row must be. An error needs a cause. */
function outcomeOf(error, { timeoutMs, signal, reason, isPoison, isCut, stoodStill }) {
  if (signal !== undefined && error === reason) return ["the caller left", "unknown"];
  if (error?.code === "TIMEOUT" && timeoutMs !== undefined) return ["timeout", "unknown"];
  if (error?.code === "QUEUE_FULL") return ["refused, queue full", "refused"];
  if (isPoison && (error instanceof TypeError || /^2[23]/.test(error?.code))) return ["refused, bad row", "refused"];
  if (error?.code === "RUN_TIMEOUT" && stoodStill) return ["cut after a standstill", "unknown"];
  if (!isCut) return ["wrong", "unknown"];
  // Nothing was sent: there was no connection.
  if (error?.code === "ECONNREFUSED" || error?.code === "57P03") return ["database away", "refused"];
  const isLost =
    ["57P01", "57P02", "ECONNRESET", "EPIPE", "RUN_TIMEOUT"].includes(error?.code) ||
    /^Connection terminated|connection error and is not queryable/.test(error?.message);
  return [isLost ? "connection lost" : "wrong", "unknown"];
}

async function cutConnections(pg, url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'chaos'");
  await client.end();
}

const processesOf = (pid) => [
  pid,
  ...readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number),
];
