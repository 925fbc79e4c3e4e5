import {
  Agent,
  request as httpRequest,
  type ClientRequest,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { longUploads } from "../../http/client-errors.ts";
import { errorDocument, errorFormOf } from "../../problems/error-forms.ts";
import { unreachable } from "./hub-link.ts";

/** What belongs to one connection, not to the request. */
const ownHeaders = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"]; // prettier-ignore

/**
 * A connection for each request: a kept one could close at the moment of the next. The hub must not know, or it would close before it
 * has read the body of a request that it refuses.
 */
const agent = new Agent({ keepAlive: true, maxFreeSockets: 0 });

interface ForwardingOptions {
  /** The hub's socket for HTTP. */
  readonly path: string;
  readonly isUp: () => boolean;
  readonly isDraining: () => boolean;
}

/** Passes requests that fronts do not answer to the hub, whole, as HTTP over its socket. */
export class Forwarding {
  readonly #options: ForwardingOptions;
  readonly #open: Set<ClientRequest> = new Set();
  readonly #streams: Set<ServerResponse> = new Set();

  constructor(options: ForwardingOptions) {
    this.#options = options;
  }

  /** The hub is gone: fails what waits for it. */
  fail(): void {
    for (const request of this.#open) request.destroy(unreachable());
  }

  /** Ends replies that last until the server closes, such as the page's events. */
  endStreams(): void {
    for (const stream of this.#streams) stream.end();
  }

  forward(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): void {
    const { raw } = request;
    reply.hijack();
    const refuse = (): void => {
      if (reply.raw.headersSent) return void reply.raw.destroy();
      const problem = unreachable();
      const { type, body } = errorDocument(problem, errorFormOf(request.url.slice(app.prefix.length)), request.id);
      const length = Buffer.byteLength(body);
      const headers = {
        ...problem.headers,
        "x-request-id": request.id,
        "content-type": type,
        "content-length": length,
      };
      raw.resume();
      reply.raw.writeHead(problem.status, headers).end(body);
    };
    if (!this.#options.isUp()) return refuse();
    const headers: OutgoingHttpHeaders = { ...raw.headers, "x-request-id": request.id };
    for (const name of ownHeaders) delete headers[name];
    const upstream = httpRequest({ socketPath: this.#options.path, agent, method: request.method, path: raw.url, headers, setHost: false }); // prettier-ignore
    this.#open.add(upstream);
    // The hub sees to it that an upload goes on.
    longUploads.add(raw.socket);
    const ended = (): void => {
      this.#open.delete(upstream);
      longUploads.delete(raw.socket);
    };
    upstream.on("response", (answer) => {
      for (const [name, value] of Object.entries(answer.headers))
        if (value !== undefined && !ownHeaders.includes(name)) reply.raw.setHeader(name, value);
      if (this.#options.isDraining()) reply.raw.setHeader("connection", "close");
      if (answer.headers["content-type"] === "text/event-stream") this.#streams.add(reply.raw);
      reply.raw.writeHead(answer.statusCode!);
      answer.pipe(reply.raw);
      answer.once("close", () => answer.complete || reply.raw.destroy());
    });
    upstream.once("error", refuse).once("close", ended);
    reply.raw.once("close", () => {
      this.#streams.delete(reply.raw);
      upstream.destroy();
    });
    raw.pipe(upstream);
  }
}
