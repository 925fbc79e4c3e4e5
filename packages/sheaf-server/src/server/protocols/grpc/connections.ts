import { createServer, type Server as NetServer, type Socket } from "node:net";
import { once } from "node:events";
import { constants, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { ServerCredentials, status, type ConnectionInjector, type Server } from "@grpc/grpc-js";
import { within } from "sheaf/internal";
import type { Settings } from "../../../settings/settings.ts";
import { addressOf, backlog, listeningOn } from "../../../http/app.ts";
import { threadTurns } from "../../../http/thread-turns.ts";
import { costs } from "../../../shared/costs.ts";
import { isOpenMethod } from "./calls.ts";
import { nameOfCode } from "./status.ts";

/** How long the last replies may take to be sent once every result is there. */
const lastRepliesMs = 2000;

interface OpenCall {
  readonly path: string;
  readonly atMs: number;
  /** When its reply or end was first seen handed over. */
  answeredAtMs: number | undefined;
}

export interface ConnectionsOptions {
  readonly settings: Settings;
  /** Whether calls of this path are streams, which may last. */
  isStream(path: string): boolean;
  /** Called when a unary call has ended, with the name of its status. */
  onEnd(path: string, status: string, durationMs: number): void;
}

/**
 * Listens for gRPC and bounds clients' resources: connections, calls, pings, uploads and unread replies. It accepts connections
 * itself and hands them to the gRPC server.
 */
export class Connections {
  readonly #listener: NetServer;
  readonly #options: ConnectionsOptions;
  readonly #injector: ConnectionInjector;
  readonly #open = new Map<ServerHttp2Stream, OpenCall>();
  readonly #timer: NodeJS.Timeout;
  #whenAnswered: (() => void) | undefined;

  constructor(server: Server, options: ConnectionsOptions) {
    const { settings } = options;
    this.#options = options;
    this.#injector = server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = createServer({ noDelay: true }, (socket: Socket) => this.#injector.injectConnection(socket));
    this.#listener.maxConnections = settings.maxConnections;
    const http2 = http2ServerOf(server);
    http2.on("session", (session) => this.#watch(session));
    http2.on("stream", (stream, headers) => this.#opened(stream, String(headers[":path"])));
    const everyMs = Math.min(5000, Math.ceil(Math.min(settings.uploadTimeoutMs, costs.replyMs) / 4));
    this.#timer = setInterval(() => this.#look(), everyMs).unref();
  }

  /** Open calls of all connections together. */
  get calls(): number {
    return this.#open.size;
  }

  /** @returns `host:port`, where it listens. */
  async listen(): Promise<string> {
    const { host, grpcPort = 0 } = this.#options.settings;
    this.#listener.listen({ host, port: grpcPort, backlog });
    await listeningOn(once(this.#listener, "listening"), { host, port: grpcPort, variable: "GRPC_PORT" });
    return addressOf(this.#listener);
  }

  /** Takes no more calls, gives the last replies a moment to be sent, and closes every connection. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#listener.close();
    this.#injector.drain(lastRepliesMs);
    if (this.#unanswered > 0)
      await within(new Promise<void>((resolve) => (this.#whenAnswered = resolve)), lastRepliesMs);
    this.#injector.drain(0);
  }

  #watch(session: ServerHttp2Session): void {
    let pings = 0;
    let countedFromAtMs = performance.now();
    session.on("ping", () => {
      const nowMs = performance.now();
      if (nowMs - countedFromAtMs >= 1000) [pings, countedFromAtMs] = [0, nowMs];
      if (++pings > costs.pingsPerSecond) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    });
    session.on("stream", () => (pings = 0));
  }

  #opened(stream: ServerHttp2Stream, path: string): void {
    const call: OpenCall = { path, atMs: performance.now(), answeredAtMs: undefined };
    this.#open.set(stream, call);
    threadTurns.open++;
    const message = new MessageBounds(isOpenMethod(path) ? costs.openMessageBytes : Infinity);
    stream.on("data", (piece: Buffer) => {
      if (message.exceededBy(piece)) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    });
    stream.once("close", () => {
      this.#open.delete(stream);
      threadTurns.open--;
      if (!this.#options.isStream(path)) {
        // Handlers and interceptors never see a call that gRPC itself refuses, such as one with too large a message.
        const code = stream.sentTrailers?.["grpc-status"] ?? stream.sentHeaders?.["grpc-status"];
        const ended = nameOfCode(code === undefined ? status.CANCELLED : Number(code));
        this.#options.onEnd(path, ended, performance.now() - call.atMs);
      }
      // Only while closing: counting at the end of each of thousands of calls would take seconds.
      if (this.#whenAnswered !== undefined && this.#unanswered === 0) this.#whenAnswered();
    });
  }

  /** Streams that only watch, such as those of the health service, may last. */
  get #unanswered(): number {
    let count = 0;
    for (const { path } of this.#open.values()) if (path.startsWith("/inference.")) count++;
    return count;
  }

  /** Resets calls that arrive too slowly, and those whose reply is not read. */
  #look(): void {
    const { settings, isStream } = this.#options;
    const nowMs = performance.now();
    for (const [stream, call] of this.#open) {
      // grpc-js ends a stream only once its message was taken.
      if (stream.writableEnded || (stream.headersSent && !isStream(call.path))) call.answeredAtMs ??= nowMs;
      const isStuck =
        call.answeredAtMs === undefined
          ? !isStream(call.path) && nowMs - call.atMs > settings.uploadTimeoutMs && !stream.readableEnded
          : nowMs - call.answeredAtMs > costs.replyMs;
      if (isStuck) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    }
  }
}

/** What the Buffer of a piece takes while its message is incomplete, beside its bytes. */
const pieceBytes = 600;
/** The compressed flag of a message, and its length. */
const headBytes = 5;

/** Bounds the memory that an incomplete message holds, by its bytes and its pieces. */
class MessageBounds {
  readonly #mostBytes: number;
  readonly #head: number[] = [];
  #missing = 0;
  #received = 0;
  #pieces = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Counts a piece of a call's messages. @returns whether it holds, or announces, more than a call may. */
  exceededBy(piece: Buffer): boolean {
    this.#pieces++;
    for (let at = 0; at < piece.length;) {
      if (this.#missing === 0) {
        this.#head.push(piece[at++]!);
        if (this.#head.length < headBytes) continue;
        this.#missing = Buffer.from(this.#head).readUInt32BE(1);
        if (this.#missing > this.#mostBytes) return true;
        this.#head.length = 0;
        this.#received = 0;
        this.#pieces = 1;
      } else {
        const taken = Math.min(this.#missing, piece.length - at);
        this.#missing -= taken;
        this.#received += taken;
        at += taken;
      }
    }
    return (
      this.#pieces > costs.freeFrames && this.#pieces * pieceBytes > 4 * this.#received + costs.freeFrames * pieceBytes
    );
  }
}

/**
 * No public interface of grpc-js tells of pings, of a call that hangs in its upload or its reply, or of one that grpc-js itself
 * refused: they are seen only at its HTTP/2 server. Its minor version is pinned for this.
 */
function http2ServerOf(server: Server): Http2Server {
  const { http2Servers } = server as unknown as { readonly http2Servers: ReadonlyMap<Http2Server, unknown> };
  const [http2] = http2Servers.keys();
  return http2!;
}
