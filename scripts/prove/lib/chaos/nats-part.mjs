import { fork } from "node:child_process";
import { connect, headers } from "@nats-io/transport-node";
import { natsFrontEnd } from "../../../../packages/sheaf/dist/adapters/nats/index.js";
import { startNats } from "../../../../test/support/nats-server.mjs";
import { disturb } from "./disturb.mjs";
import { Ledger } from "./ledger.mjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const queue = "chaos";
const timeoutMs = 8000;
const callersAtMost = 60;
const workerCount = 2;

/** One queue over NATS: a front end here, two worker processes and the broker killed, stopped and drained. */
export async function chaosOverNats({ seconds, draw }) {
  const nats = await startNats();
  const connection = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  const call = natsFrontEnd({ connection, headers, queue, timeoutMs, ackWaitMs: 1000, maxQueueSize: 200 });
  const workers = Array.from({ length: workerCount }, () => new Worker(nats.url));
  await Promise.all(workers.map((worker) => worker.start()));
  await call.ready();

  const ledger = new Ledger();
  const faults = {};
  const throwers = new Set();
  let open = 0;
  let number = 0;
  const send = () => {
    const item = { id: `n${++number}`, number: draw.below(1e9) };
    const fault = draw.between(0, 1);
    if (fault < 0.01) item.do = "fail";
    else if (fault < 0.014) item.do = "throw";
    else if (fault < 0.02) item.do = "slow";
    if (item.do === "throw") throwers.add(item.id);
    const options = { priority: draw.of(["immediate", "interactive", "interactive", "bulk"]) };
    if (draw.chance(0.1)) options.timeoutMs = Math.ceil(draw.between(1, 1000));
    const reason = new Error("the caller went away");
    if (draw.chance(0.05)) {
      const controller = new AbortController();
      options.signal = controller.signal;
      setTimeout(() => controller.abort(reason), draw.between(0, 100));
    }
    const ended = ledger.send(JSON.stringify(item), timeoutMs + 20_000);
    open++;
    call(item, options)
      .then(
        (result) => {
          const isOwn = result?.id === item.id && result.number === 2 * item.number;
          const may = item.do === undefined || item.do === "slow";
          if (isOwn && may) ended("ok");
          else ended("wrong", JSON.stringify(result));
        },
        (error) => ended(...outcomeOf(error, item, reason, throwers)),
      )
      .finally(() => open--);
  };

  let isOver = false;
  const load = async () => {
    while (!isOver) {
      if (open < callersAtMost) send();
      if (draw.chance(0.002)) for (let i = 0; i < 300; i++) send();
      await sleep(draw.between(0, 25));
    }
  };
  const disturbances = {
    "kill -9 of a worker": () => draw.of(workers).restart("SIGKILL"),
    "SIGTERM of a worker, and a start": () => draw.of(workers).restart("SIGTERM"),
    "a worker stopped for a while": () => draw.of(workers).pause(draw.between(100, 3000)),
    "kill -9 of the broker, and a start": () => nats.restart(),
    "the broker stopped for a while": async () => {
      nats.pause();
      await sleep(draw.between(100, 1500));
      nats.resume();
    },
  };
  const both = Promise.all([load(), disturb({ draw, disturbances, faults, isOver: () => isOver })]);
  await Promise.race([both, sleep(1000 * seconds)]);
  isOver = true;
  await both;
  while (ledger.open > 0) await sleep(50);
  const crash = workers.map((worker) => worker.crash).find((text) => text !== undefined);
  await Promise.all(workers.map((worker) => worker.stop()));
  await call.close({ graceMs: 1000 });
  await connection.close();
  await nats.stop();
  return { name: "queue over NATS", ledger, faults, crash };
}

/** An error must have a cause that was there. */
function outcomeOf(error, item, reason, throwers) {
  if (error === reason) return ["the caller left"];
  if (error.message.includes(`failed by ${item.id}`)) return ["model error"];
  const thrower = /thrown by (\S+)/.exec(error.message)?.[1];
  if (thrower !== undefined && throwers.has(thrower)) return ["model error"];
  if (error.code === "TIMEOUT") return ["timeout"];
  if (error.code === "QUEUE_FULL") return ["refused"];
  if (error.code === "UNAVAILABLE") return ["unavailable"];
  // Five deliveries, each of which met a worker that was killed.
  if (error.code === "DEAD_LETTERED") return ["dead letter"];
  return ["wrong", String(error.stack)];
}

/** A worker process that is started again whenever it is ended. */
class Worker {
  crash;
  #url;
  #child;
  #isAsked = false;

  constructor(url) {
    this.#url = url;
    process.once("exit", () => this.#child?.kill("SIGKILL"));
  }

  async start() {
    this.#isAsked = false;
    const child = fork(new URL("nats-worker.mjs", import.meta.url), [this.#url, queue]);
    this.#child = child;
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        if (!this.#isAsked) this.crash = `a worker of the queue ended with ${signal ?? code}`;
        resolve();
      });
    });
    const isReady = new Promise((resolve) => child.once("message", resolve));
    await Promise.race([isReady, this.exited, sleep(30_000)]);
  }

  async restart(signal) {
    await this.#end(signal);
    await this.start();
  }

  async pause(ms) {
    this.#child.kill("SIGSTOP");
    await sleep(ms);
    this.#child.kill("SIGCONT");
  }

  stop() {
    return this.#end("SIGKILL");
  }

  async #end(signal) {
    this.#isAsked = true;
    this.#child.kill(signal);
    const tooLate = setTimeout(() => this.#child.kill("SIGKILL"), 15_000);
    await this.exited;
    clearTimeout(tooLate);
  }
}
