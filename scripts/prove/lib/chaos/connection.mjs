import { connect } from "node:net";

/** One keep-alive connection to a server, one request at a time; it sees every byte that comes back. */
export class ChaosConnection {
  #socket;
  #received = "";
  #waiting;
  #unasked;
  isOpen = true;
  /** When the kernel had the last byte of the request. */
  writtenAtMs = Infinity;
  /** Resolves when it stands, or never will. */
  opened;

  /** `unasked(text)` gets every answer to no request. */
  constructor(port, unasked) {
    this.#unasked = unasked;
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.opened = new Promise((resolve) => this.#socket.once("connect", resolve).once("close", resolve));
    this.#socket.setEncoding("latin1").on("data", (text) => this.#read(text));
    this.#socket.on("error", () => undefined);
    this.#socket.on("close", () => this.#ended());
  }

  /** Writes the parts with `pauseMs` between two; resolves with status, headers and body, or undefined when it was closed. */
  async request(parts, pauseMs) {
    this.writtenAtMs = Infinity;
    const answer = new Promise((resolve) => (this.#waiting = resolve));
    if (!this.isOpen) this.#ended();
    for (const [index, part] of parts.entries()) {
      if (index > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const isLast = index === parts.length - 1;
      if (this.isOpen) this.#socket.write(part, () => isLast && (this.writtenAtMs = performance.now()));
    }
    return answer;
  }

  destroy() {
    this.#socket.destroy();
  }

  #read(text) {
    this.#received += text;
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#received.slice(0, headEnd);
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    const end = headEnd + 4 + length;
    if (this.#received.length < end) return;
    const body = Buffer.from(this.#received.slice(headEnd + 4, end), "latin1").toString("utf8");
    this.#received = this.#received.slice(end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? 0);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (/^connection: close$/im.test(head)) this.destroy();
    if (waiting === undefined) this.#unasked(`${status} ${body.slice(0, 200)}`);
    else waiting({ status, requestId: header(head, "x-request-id"), retryAfter: header(head, "retry-after"), body });
    if (this.#received !== "") this.#read("");
  }

  #ended() {
    this.isOpen = false;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(undefined);
  }
}

const header = (head, name) => new RegExp(`^${name}: (\\S+)$`, "im").exec(head)?.[1];
