// The entry of every worker thread.
import { parentPort, workerData } from "node:worker_threads";
import { Host, type HostOptions } from "./host.ts";
import type { Message } from "./message.ts";
import { transferable } from "./wire.ts";

const port = parentPort;
if (port !== null) {
  const host = new Host({
    port: { send: (message) => sendTo(port, message) },
    memoryBytes: () => {
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    },
    // In a worker thread this ends the thread. What was posted before still arrives.
    exit: () => process.exit(0),
  });
  port.on("message", (message: Message) => host.receive(message));
  host.load(workerData as HostOptions);
}

function sendTo(port: NonNullable<typeof parentPort>, message: Message): void {
  if (message.packed === undefined) {
    port.postMessage(message);
  } else {
    const { packed, transfer } = transferable(message.packed);
    port.postMessage({ ...message, packed }, transfer);
  }
}
