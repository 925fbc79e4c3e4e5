import { Worker } from "node:worker_threads";
import type { HostOptions } from "./host.ts";
import type { Link, LinkEvents } from "./link.ts";
import { threadEntry } from "./worker-entry.ts";
import { post, received, type Posted } from "./thread-message.ts";

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
  worker.on("message", (posted: Posted) => events.message(received(posted)));
  worker.on("messageerror", (error) => (uncaught = error));
  // Uncaught in the worker, or its heap is full; `exit` follows.
  worker.on("error", (error: unknown) => (uncaught = error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", (code) => events.ended(uncaught?.message ?? `exit code ${code}`, uncaught));
  return {
    pid: undefined,
    send: (message) => post(worker, message),
    // Terminating a thread inside native code aborts the whole process.
    kill: () => false,
    hold: (alive) => (alive ? worker.ref() : worker.unref()),
  };
}
