// In a process that runs batches: start as many as you like, on any machine that reaches NATS_URL.
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers } from "@nats-io/transport-node";
import { createBatcher } from "sheaf";
import { natsWorker } from "sheaf/adapters/nats";

const connection = await connect({ servers: process.env.NATS_URL, maxReconnectAttempts: -1, reconnectTimeWait: 200 });
const shout = createBatcher(
  async (words) => {
    await sleep(20 + words.length); // a model that costs 20 ms a batch and 1 ms an item
    return words.map((word) => word.toUpperCase());
  },
  { maxBatchSize: 16, concurrency: 1 },
);
const worker = natsWorker(shout, { connection, headers, queue: "shout", ackWaitMs: 1000 });
await worker.ready();
process.send?.("ready");

process.on("SIGTERM", async () => {
  await worker.drain(); // finishes its batches, gives back what it had not begun
  await connection.close();
  process.disconnect?.();
});
