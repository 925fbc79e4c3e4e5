import type { Message, Port } from "../wire/message.ts";

/** Events of a worker, for its pool. Messages come in the order they were sent, all of them before `ended`. */
export interface WorkerConnectionEvents {
  message(message: Message): void;
  /** Once: the worker is gone. `why` ends a sentence: "exit code 1", "signal SIGKILL". */
  ended(why: string, error: Error | undefined): void;
}

/** The pool's end of a worker thread or process. */
export interface WorkerConnection extends Port {
  /** Of a process; undefined for a thread. */
  readonly pid: number | undefined;
  /** Ends it at once, whatever it does. False where that cannot be done safely: a thread inside native code. */
  kill(): boolean;
  /** Whether it keeps this process alive. */
  hold(alive: boolean): void;
}

/** Starts a worker. */
export type OpenConnection = (events: WorkerConnectionEvents) => WorkerConnection;

/** A worker that cannot even be created (no memory, no room for its arguments) ends as any other does, not with a throw. */
export function openOrEnd(open: OpenConnection, events: WorkerConnectionEvents): WorkerConnection {
  try {
    return open(events);
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    setImmediate(() => events.ended(error.message, error));
    return { pid: undefined, send: () => undefined, kill: () => true, hold: () => undefined };
  }
}
