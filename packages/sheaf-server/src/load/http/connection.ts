import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { ResponseReader } from "./response-reader.ts";
import { succeeded, type RequestEnd } from "../target.ts";

/** One keep-alive connection that carries one request at a time. */
export class Connection {
  readonly #socket: Socket;
  readonly #reader = new ResponseReader();
  readonly #onFree: (connection: Connection, usable: boolean) => void;
  #done: ((outcome: RequestEnd) => void) | undefined;
  #closed = false;

  /** `onFree` is called after every request, and once when an idle connection has closed. */
  constructor(url: URL, onFree: (connection: Connection, usable: boolean) => void) {
    this.#onFree = onFree;
    const tls = url.protocol === "https:";
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const port = Number(url.port) || (tls ? 443 : 80);
    this.#socket = tls ? connectTls({ host, port, servername: host }) : connectTcp({ host, port });
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (chunk) => this.#onData(chunk));
    this.#socket.on("error", (error: NodeJS.ErrnoException) => this.#finish({ status: error.code ?? "error" }, false));
    this.#socket.on("close", () =>
      this.#finish(this.#reader.end() ? this.#outcome() : { status: this.#closed ? "cancelled" : "closed" }, false),
    );
  }

  send(request: Buffer, done: (outcome: RequestEnd) => void): void {
    this.#done = done;
    this.#reader.reset();
    this.#socket.write(request);
  }

  /** Drops the request without calling back: an answer that comes later must not be taken for that of the next one. */
  cancel(): void {
    this.#done = undefined;
    this.destroy();
  }

  destroy(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    if (this.#done === undefined) return this.destroy();
    try {
      if (this.#reader.push(chunk)) this.#finish(this.#outcome(), this.#reader.keepAlive);
    } catch (error) {
      this.#finish({ status: "bad response", body: (error as Error).message }, false);
    }
  }

  #outcome(): RequestEnd {
    const { status, body, retryAfterMs } = this.#reader;
    if (succeeded(status)) return { status };
    return retryAfterMs === undefined ? { status, body } : { status, body, retryAfterMs };
  }

  #finish(outcome: RequestEnd, usable: boolean): void {
    const done = this.#done;
    this.#done = undefined;
    if (!usable) this.destroy();
    this.#onFree(this, usable);
    done?.(outcome);
  }
}
