// Two worker processes share one queue. One is killed in the middle of its batch; every caller still gets its answer.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers } from "@nats-io/transport-node";
import { natsFrontEnd } from "sheaf/adapters/nats";
import { startNats } from "./nats-server.mjs";

const nats = await startNats();
if (nats === undefined) process.exit(process.env.CI === "true" ? 1 : 0);
const startWorker = async () => {
  const worker = fork(new URL("worker.mjs", import.meta.url), { env: { ...process.env, NATS_URL: nats.url } });
  await once(worker, "message");
  return worker;
};
const [first, second] = await Promise.all([startWorker(), startWorker()]);

const connection = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 200 });
const shout = natsFrontEnd({ connection, headers, queue: "shout", ackWaitMs: 1000 });
await shout.ready();

const calls = [];
for (let i = 0; i < 400; i++) {
  calls.push(shout.detailed(`word ${i}`));
  if (i === 200) first.kill("SIGKILL");
  await sleep(2);
}
const answers = await Promise.all(calls);
answers.forEach(({ value }, i) => assert.equal(value, `WORD ${i}`));

const meanSize = answers.reduce((sum, { batchSize }) => sum + batchSize, 0) / answers.length;
const again = answers.filter(({ deliveries }) => deliveries > 1).length;
console.log(`400 calls, 400 own answers, though a worker was killed after 200.`);
console.log(`A call shared its batch with ${(meanSize - 1).toFixed(1)} others; ${again} calls were given out again.`);

await shout.close();
second.kill("SIGTERM");
await once(second, "exit");
await connection.close();
await nats.stop();
