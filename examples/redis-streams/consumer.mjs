// Takes messages of a Redis stream until SIGTERM: in batches, each acknowledged by its own outcome.
import { Redis } from "ioredis";
import { consume, createBatcher } from "sheaf";
import { work } from "./work.mjs";

const leaseMs = 2000;
const [stream, group, name] = ["jobs", "workers", process.env.CONSUMER]; // a name that stays, such as a pod's
const redis = new Redis(process.env.REDIS_URL, { enableAutoPipelining: true });
const reader = redis.duplicate(); // a read that waits would hold up the answers

const taken = await redis.xpending(stream, group, "-", "+", 1000, name); // by this name, before it was killed
let reclaimAtMs = 0;
async function read(room) {
  const ids = taken.splice(0, room).map(([id]) => id);
  if (ids.length > 0) return redis.xclaim(stream, group, name, 0, ...ids);
  if (Date.now() >= reclaimAtMs) {
    reclaimAtMs = Date.now() + leaseMs / 2;
    const [, idle] = await redis.xautoclaim(stream, group, name, leaseMs, "0", "COUNT", room);
    if (idle.length > 0) return idle; // messages of dead consumers, and failed messages
  }
  return (await reader.xreadgroup("GROUP", group, name, "COUNT", room, "BLOCK", 500, "STREAMS", stream, ">"))?.[0][1];
}
const jobOf = ([, fields]) => JSON.parse(fields[1]);
const run = createBatcher((entries) => work(entries.map(jobOf)), { maxBatchSize: 50, orderKey: (e) => jobOf(e).key });
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

await consume(read, run, {
  leaseMs,
  signal: stop.signal,
  ack: ([id]) => Promise.all([redis.xack(stream, group, id), redis.xdel(stream, id)]),
  nack: async ([id, fields]) => {
    const [[, , , deliveries]] = await redis.xpending(stream, group, id, id, 1);
    if (deliveries < 3) return; // it is reclaimed once it has been idle for leaseMs
    await redis.multi().xadd("dead", "*", ...fields).xack(stream, group, id).xdel(stream, id).exec(); // prettier-ignore
  },
  release: ([id]) => redis.xclaim(stream, group, name, 0, id, "IDLE", leaseMs, "JUSTID"),
  extend: ([id]) => redis.xclaim(stream, group, name, 0, id, "JUSTID"),
});
await Promise.all([redis.quit(), reader.quit()]);
