// The entry of every worker thread.
import { workerData } from "node:worker_threads";
import { Host } from "./host.ts";
import type { ThreadData } from "./entry.ts";
import { post, received, type Posted } from "../wire/thread-message.ts";

const { host: options, port, native } = workerData as ThreadData;
const { dlopen } = process;
process.dlopen = (...args) => {
  native[0] = 1;
  dlopen.apply(process, args);
};
const host = new Host({
  port: { send: (message) => post(port, message) },
  // Posted messages arrive even if this thread ends.
  sent: () => undefined,
  memoryBytes: () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  },
  // In a worker thread this ends the thread.
  exit: () => process.exit(0),
});
port.on("message", (posted: Posted) => host.receive(received(posted)));
host.load(options);
