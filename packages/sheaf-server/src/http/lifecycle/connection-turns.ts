import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { threadTurns } from "../thread-turns.ts";
import { costs } from "../../shared/costs.ts";

/** A connection whose client sends requests without waiting for replies. */
interface Line {
  readonly replies: ServerResponse[];
  readonly waiting: (() => void)[];
  isScheduled: boolean;
}

/**
 * Bounds pipelining. HTTP/1.1 lets a client send thousands of requests in one packet, and Node starts all of them in one turn of the
 * event loop. Here only a few per connection are in progress, none starts before a finished reply has been sent, and each starts in
 * its own turn. Call it once, after the hook that counts requests.
 */
export function takeTurns(app: FastifyInstance): void {
  const lines = new WeakMap<Socket, Line>();
  let waitingInAll = 0;

  app.addHook("onRequest", ({ raw: { socket } }, { raw: reply }, done) => {
    const line = lines.get(socket) ?? newLine(socket);
    const start = (): void => {
      line.replies.push(reply);
      threadTurns.open++;
      reply.once("close", () => {
        threadTurns.open--;
        line.replies.splice(line.replies.indexOf(reply), 1);
        startNext(line);
      });
      done();
    };
    if (line.waiting.length === 0 && mayStart(line)) start();
    else if (line.waiting.length < costs.requestsWaiting && waitingInAll < costs.requestsWaitingInAll) {
      line.waiting.push(start);
      waitingInAll++;
    } else socket.destroy();
  });

  function newLine(socket: Socket): Line {
    const line: Line = { replies: [], waiting: [], isScheduled: false };
    lines.set(socket, line);
    socket.once("close", () => {
      waitingInAll -= line.waiting.splice(0).length;
      // Node reports a lost connection only to the first reply in line.
      for (const reply of line.replies.splice(0)) if (reply.socket === null) reply.emit("close");
    });
    return line;
  }

  function startNext(line: Line): void {
    if (line.isScheduled || line.waiting.length === 0 || !mayStart(line)) return;
    line.isScheduled = true;
    setImmediate(() => {
      line.isScheduled = false;
      if (line.waiting.length > 0 && mayStart(line)) {
        waitingInAll--;
        line.waiting.shift()!();
      }
      startNext(line);
    });
  }
}

const mayStart = ({ replies }: Line): boolean =>
  replies.length === 0 || (replies.length < costs.requestsInProgress && !replies.some((reply) => reply.writableEnded));
