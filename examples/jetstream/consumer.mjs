// Takes messages of a JetStream work queue until SIGTERM: in batches, each acknowledged by its own outcome.
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { consume, createBatcher } from "sheaf";
import { work } from "./work.mjs";

const connection = await connect({ servers: process.env.NATS_URL });
const js = jetstream(connection);
const consumer = await js.consumers.get("JOBS", "worker");
const { config } = await consumer.info();
// Pull requests end with a restart of the server: new ones come after these 5 s.
const messages = await consumer.consume({ max_messages: config.max_ack_pending, expires: 5000 });

const run = createBatcher((batch) => work(batch.map((message) => message.json())), {
  maxBatchSize: 50,
  concurrency: 2,
  orderKey: (message) => message.json().key, // messages of a key run in their order
});

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
stop.signal.addEventListener("abort", () => messages.close());

await consume(messages, run, {
  prefetch: config.max_ack_pending, // the broker's bound: nothing waits in the client, where its lease would run out
  leaseMs: config.ack_wait / 1e6,
  signal: stop.signal,
  ack: (message) => message.ack(),
  nack: async (message) => {
    if (message.info.deliveryCount < 3) return message.nak(1000);
    await js.publish("dead", message.data, { msgID: String(message.seq) }); // once, also if this is tried again
    message.term();
  },
  release: (message) => message.nak(),
  extend: (message) => message.working(),
});
await connection.drain();
