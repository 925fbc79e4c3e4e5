import { performance } from "node:perf_hooks";
import { Connection } from "./connection.ts";
import { withHeader } from "./request.ts";
import type { RequestEnd, Target } from "../target.ts";

export interface HttpTargetOptions {
  readonly url: URL;
  /** Whole requests, head and body: a function of their number, or n that are sent in turn. */
  readonly requests: readonly Buffer[] | ((index: number) => Buffer);
  /** One more header for the request of a number: its whole line. Default none. */
  readonly headerAt?: ((index: number) => Buffer) | undefined;
  /** Most connections at once; integer >= 1. Default 1024. */
  readonly maxConnections?: number | undefined;
}

interface Waiting {
  readonly request: Buffer;
  readonly done: (outcome: RequestEnd) => void;
  connection: Connection | undefined;
  cancelled: boolean;
}

// Servers close idle connections after 5 s (Node's default); a request that races with that would fail for no fault of
// the server, so we are first.
const maxIdleMs = 3000;

/**
 * Raw keep-alive sockets: a pool that grows to a cap, the most recently used connection first, one request at a time on
 * each. Requests beyond the cap wait in order; their number is bounded by the generator's timeout.
 */
export function httpTarget({ url, requests, headerAt, maxConnections = 1024 }: HttpTargetOptions): Target {
  const open = new Set<Connection>();
  const idle: { connection: Connection; idleAtMs: number }[] = [];
  let waiting: Waiting[] = [];
  let nextWaiting = 0;
  let waited = 0;
  let closed = false;

  function start(call: Waiting): void {
    const connection = takeConnection();
    call.connection = connection;
    connection.send(call.request, (outcome) => {
      // The connection may carry another request by the time someone cancels this one.
      call.connection = undefined;
      call.done(outcome);
    });
  }

  function takeConnection(): Connection {
    for (let entry = idle.pop(); entry !== undefined; entry = idle.pop()) {
      if (performance.now() - entry.idleAtMs <= maxIdleMs) return entry.connection;
      open.delete(entry.connection);
      entry.connection.destroy();
    }
    const connection = new Connection(url, onFree);
    open.add(connection);
    return connection;
  }

  function onFree(connection: Connection, usable: boolean): void {
    if (usable) idle.push({ connection, idleAtMs: performance.now() });
    else {
      open.delete(connection);
      const position = idle.findIndex((entry) => entry.connection === connection);
      if (position >= 0) idle.splice(position, 1);
    }
    startWaiting();
  }

  function startWaiting(): void {
    while (!closed && nextWaiting < waiting.length && (idle.length > 0 || open.size < maxConnections)) {
      const call = waiting[nextWaiting++]!;
      if (!call.cancelled) start(call);
    }
    if (nextWaiting > 1024 && nextWaiting * 2 > waiting.length) {
      waiting = waiting.slice(nextWaiting);
      nextWaiting = 0;
    }
  }

  return {
    get waited() {
      return waited;
    },
    send(index, done) {
      const rendered = typeof requests === "function" ? requests(index) : requests[index % requests.length]!;
      const request = headerAt === undefined ? rendered : withHeader(rendered, headerAt(index));
      const call: Waiting = { request, done, connection: undefined, cancelled: false };
      if (nextWaiting === waiting.length && (idle.length > 0 || open.size < maxConnections)) start(call);
      else {
        waited++;
        waiting.push(call);
      }
      return () => {
        call.cancelled = true;
        call.connection?.cancel();
      };
    },
    close() {
      closed = true;
      for (const connection of open) connection.destroy();
    },
  };
}
