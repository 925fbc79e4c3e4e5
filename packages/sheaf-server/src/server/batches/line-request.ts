import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { vouchFor } from "../../http/check-callers.ts";
import type { Caller } from "../../tenants/caller.ts";

export interface RouteReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Uint8Array;
}

/** Stands for a keep-alive connection, which lines use one after another. */
class LineSocket extends EventEmitter {
  readonly destroyed: boolean = false;
  readonly remoteAddress: string = "127.0.0.1";
  destroy(): void {}
}

class RequestOfLine extends Readable {
  readonly method: string = "POST";
  readonly httpVersion: string = "1.1";
  readonly httpVersionMajor: number = 1;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly socket: LineSocket;
  #body: Buffer | undefined;

  constructor(url: string, body: Buffer, socket: LineSocket) {
    super({ autoDestroy: false });
    this.url = url;
    this.socket = socket;
    this.#body = body;
    this.headers = {
      host: "localhost",
      "content-type": "application/json",
      "content-length": String(body.length),
      "x-sheaf-priority": "bulk",
    };
  }

  override _read(): void {
    this.push(this.#body);
    this.push(null);
    this.#body = undefined;
  }
}

/** The part of Node's ServerResponse that a route needs; Node's own would format headers that nobody reads. */
class ReplyToLine extends EventEmitter {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  finished = false;
  readonly destroyed: boolean = false;
  readonly socket: LineSocket;
  #headers: Record<string, unknown> = {};
  readonly #pieces: Buffer[] = [];
  readonly #ended: (reply: RouteReply) => void;

  constructor(socket: LineSocket, ended: (reply: RouteReply) => void) {
    super();
    this.socket = socket;
    this.#ended = ended;
  }

  setHeader(name: string, value: unknown): void {
    this.#headers[name] = value;
  }

  getHeader(name: string): unknown {
    return this.#headers[name];
  }

  hasHeader(name: string): boolean {
    return name in this.#headers;
  }

  writeHead(status: number, headers: Readonly<Record<string, unknown>>): void {
    this.statusCode = status;
    this.headersSent = true;
    this.#headers = { ...this.#headers, ...headers };
  }

  write(piece: string | Uint8Array): boolean {
    this.#pieces.push(Buffer.from(piece as string));
    return true;
  }

  end(piece?: string | Uint8Array | null): void {
    if (this.writableEnded) return;
    if (piece) this.write(piece);
    this.writableEnded = this.finished = true;
    process.nextTick(() => {
      this.emit("finish");
      this.emit("close");
      this.#ended({ status: this.statusCode, headers: this.#headers, body: Buffer.concat(this.#pieces) });
    });
  }

  destroy(): void {
    this.end();
  }
}

const idle: LineSocket[] = [];

/** Runs a line through its route in the bulk lane, with the code that serves network requests. */
export function answerLine(
  app: FastifyInstance,
  url: string,
  body: string,
  caller: Caller | undefined,
): Promise<RouteReply> {
  return new Promise((resolve) => {
    const socket = idle.pop() ?? new LineSocket().setMaxListeners(0);
    const request = new RequestOfLine(url, Buffer.from(body), socket) as unknown as IncomingMessage & {
      readonly socket: Socket;
    };
    const reply = new ReplyToLine(socket, (answer) => {
      idle.push(socket);
      resolve(answer);
    });
    vouchFor(request, caller);
    app.routing(request, reply as unknown as ServerResponse);
  });
}
