import { Worker } from "node:worker_threads";
import type { HostOptions } from "./host.ts";
import type { Link, LinkEvents } from "./link.ts";
import type { Message } from "./message.ts";
import { threadEntry } from "./worker-entry.ts";
import { transferable } from "./wire.ts";

export interface ThreadLinkOptions extends HostOptions {
  readonly heapLimitMb: number | undefined;
}

/** A worker thread: batches are transferred, not copied again. */
export function openThread({ heapLimitMb, ...host }: ThreadLinkOptions, events: LinkEvents): Link {
  const worker = new Worker(threadEntry, {
    workerData: host,
    name: "sheaf",
    ...(heapLimitMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
  });
  let uncaught: Error | undefined;
  worker.on("message", (message: Message) => events.message(message));
  worker.on("messageerror", (error) => (uncaught = error));
  // Uncaught in the worker, or its heap is full; `exit` follows.
  worker.on("error", (error: unknown) => (uncaught = error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", (code) => events.ended(uncaught?.message ?? `exit code ${code}`, uncaught));
  return {
    pid: undefined,
    send(message) {
      if (message.packed === undefined) return worker.postMessage(message);
      const { packed, transfer } = transferable(message.packed);
      worker.postMessage({ ...message, packed }, transfer);
    },
    // Terminating a thread inside native code aborts the whole process.
    kill: () => false,
    hold: (alive) => (alive ? worker.ref() : worker.unref()),
  };
}
