import { Kind, message, type Port } from "../wire/message.ts";
import { pack } from "../wire/pack.ts";
import type { Received } from "../wire/received.ts";

/** Events of a worker, for its pool. Messages come in the order they were sent, all of them before `ended`. */
export interface WorkerConnectionEvents {
  message(received: Received): void;
  /** Called once: the worker has ended. `why` completes a sentence: "exit code 1", "signal SIGKILL". */
  ended(why: string, error: Error | undefined): void;
}

/** The pool's end of a worker thread or process. */
export interface WorkerConnection {
  readonly pid: number | undefined;
  /** Hands over a batch. @throws {Error} it cannot be packed; the worker is as it was. */
  run(id: number, attempt: number, items: readonly unknown[]): void;
  abort(id: number): void;
  /** It finishes its batches, unloads and ends. */
  close(): void;
  /** Ends it at once, whatever it does. False where that cannot be done safely: a thread that has loaded native code. */
  kill(): boolean;
  hold(alive: boolean): void;
}

/** Starts a worker. `index`: which of the pool's instances it is, from 0; its replacement has the same. */
export type OpenConnection = (events: WorkerConnectionEvents, index: number) => WorkerConnection;

/** A worker that cannot even be created (no memory, no room for its arguments) ends as any other does, not with a throw. */
export function openOrEnd(open: OpenConnection, events: WorkerConnectionEvents, index: number): WorkerConnection {
  try {
    return open(events, index);
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    setImmediate(() => events.ended(error.message, error));
    const nothing = (): void => undefined;
    return { pid: undefined, run: nothing, abort: nothing, close: nothing, kill: () => true, hold: nothing };
  }
}

/** `hold` of a worker that is a process, with a pipe of its own. */
export const holdOver =
  (...handles: readonly ({ ref(): unknown; unref(): unknown } | undefined)[]): WorkerConnection["hold"] =>
  (alive) => {
    for (const handle of handles) {
      if (alive) handle?.ref();
      else handle?.unref();
    }
  };

/** The requests of a connection to a worker in JavaScript. `wantsEncoded`: as `EncodeRows.wanted`. */
export const requestsOver = (
  { send }: Port,
  wantsEncoded: (() => boolean) | undefined,
): Pick<WorkerConnection, "run" | "abort" | "close"> => ({
  run: (id, attempt, items) =>
    send(message(wantsEncoded?.() === true ? Kind.batchToEncode : Kind.batch, id, attempt, pack(items))),
  abort: (id) => send(message(Kind.abort, id)),
  close: () => send(message(Kind.close)),
});
