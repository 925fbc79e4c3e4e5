// A worker of the queue in `npm run prove -- chaos`: doubles numbers, or does what an item says. Drains on SIGTERM.
import { connect, headers } from "@nats-io/transport-node";
import { natsWorker } from "../../../../packages/sheaf/dist/adapters/nats/index.js";
import { createBatcher } from "../../../../packages/sheaf/dist/index.js";

const [servers, queue] = process.argv.slice(2);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
const run = async (items) => {
  await sleep(2 + 0.2 * items.length);
  if (items.some((item) => item.do === "slow")) await sleep(300);
  const thrower = items.find((item) => item.do === "throw");
  if (thrower !== undefined) throw new Error(`thrown by ${thrower.id}`);
  return items.map(({ id, number, do: what }) =>
    what === "fail" ? new Error(`failed by ${id}`) : { id, number: 2 * number },
  );
};
const batcher = createBatcher(run, { maxBatchSize: 16, concurrency: 2 });
const worker = natsWorker(batcher, { connection, headers, queue, ackWaitMs: 1000 });
await worker.ready();
process.send("ready");
process.once("SIGTERM", () => {
  void worker
    .drain({ graceMs: 5000 })
    .then(() => connection.drain())
    .then(() => process.exit(0));
});
