import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import type { HostOptions } from "../worker/host.ts";
import { requestsOver, type WorkerConnection, type WorkerConnectionEvents } from "./connection.ts";
import { receivedFrom } from "../wire/received.ts";
import { threadEntry, type ThreadData } from "../worker/entry.ts";
import { post, received, type Posted } from "../wire/thread-message.ts";

export interface ThreadOptions extends HostOptions {
  readonly heapLimitMb: number | undefined;
  /** As `EncodeRows.wanted`. */
  readonly wantsEncoded: (() => boolean) | undefined;
}

/**
 * A worker thread: batches are transferred, not copied again, over a port of their own, so that a module's messages to its
 * `parentPort` cannot get in between.
 */
export function openThread(
  { heapLimitMb, wantsEncoded, ...host }: ThreadOptions,
  events: WorkerConnectionEvents,
): WorkerConnection {
  const { port1: port, port2 } = new MessageChannel();
  const native = new Int32Array(new SharedArrayBuffer(4));
  // Only Node shows what a thread loads.
  if (process.versions["bun"] !== undefined || process.versions["deno"] !== undefined) native[0] = 1;
  const worker = new Worker(threadEntry, {
    workerData: { host, port: port2, native } satisfies ThreadData,
    transferList: [port2],
    name: "sheaf",
    ...(heapLimitMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
  });
  let uncaught: Error | undefined;
  const read = (posted: unknown): void => {
    try {
      events.message(receivedFrom(received(posted as Posted)));
    } catch (error) {
      // The model overwrote a message; what follows can no longer be parsed.
      uncaught ??= error as Error;
      port.close();
      void worker.terminate();
    }
  };
  port.on("message", read);
  port.on("messageerror", (error) => (uncaught = error));
  // The worker alone decides whether this process stays alive.
  port.unref();
  // Uncaught in the worker, or its heap is full; `exit` follows.
  worker.on("error", (error: unknown) => (uncaught = error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", (code) => {
    // Its last messages arrive before its end.
    for (let left = receiveMessageOnPort(port); left !== undefined; left = receiveMessageOnPort(port)) {
      read(left.message);
    }
    port.close();
    events.ended(uncaught?.message ?? `exit code ${code}`, uncaught);
  });
  return {
    pid: undefined,
    ...requestsOver({ send: (message) => post(port, message) }, wantsEncoded),
    kill() {
      // Terminating a thread inside native code aborts the whole process.
      if (native[0] !== 0) return false;
      void worker.terminate();
      return true;
    },
    hold: (alive) => (alive ? worker.ref() : worker.unref()),
  };
}
