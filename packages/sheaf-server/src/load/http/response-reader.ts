const headEnd = Buffer.from("\r\n\r\n");
const maxHeadBytes = 64 * 1024;
const maxLineBytes = 8 * 1024;
const keptBodyBytes = 2048;

const emptyBuffer: Buffer = Buffer.alloc(0);

type State = "head" | "body" | "chunk-size" | "chunk" | "chunk-end" | "trailer" | "until-close" | "done";

/**
 * Reads one HTTP/1.1 response after the other from a connection without pipelining: status, and where the body ends
 * (content-length, chunked or close). Bodies are dropped but for their first 2 KiB, which an error message may show.
 */
export class ResponseReader {
  #state: State = "head";
  #pending: Buffer = emptyBuffer;
  #remainingBytes = 0;
  #body: Buffer[] = [];
  #bodyBytes = 0;

  status = 0;
  keepAlive = true;
  /** How long a refusal asks its client to wait: `retry-after-ms`, or `retry-after` in seconds. */
  retryAfterMs: number | undefined;

  get body(): string {
    return Buffer.concat(this.#body).toString("utf8");
  }

  reset(): void {
    this.#state = "head";
    this.#pending = emptyBuffer;
    this.#body = [];
    this.#bodyBytes = 0;
    this.status = 0;
  }

  /** Takes received bytes; true when the response is complete. @throws {Error} if they are not HTTP/1.1. */
  push(chunk: Buffer): boolean {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    this.#pending = emptyBuffer;
    while (rest.length > 0 && this.#state !== "done") {
      const next = this.#step(rest);
      if (next === undefined) {
        this.#pending = rest;
        return false;
      }
      rest = next;
    }
    if (this.#state === "done" && rest.length > 0) throw new Error("the server sent more than one response");
    return this.#state === "done";
  }

  /** The server closed the connection; true when that completes the response. */
  end(): boolean {
    return this.#state === "until-close";
  }

  /** Consumes a part of `bytes` and returns the rest, or undefined when it needs more. */
  #step(bytes: Buffer): Buffer | undefined {
    switch (this.#state) {
      case "head":
        return this.#readHead(bytes);
      case "body":
      case "chunk":
        return this.#readBody(bytes);
      case "until-close":
        this.#keep(bytes);
        return emptyBuffer;
      default:
        return this.#readLine(bytes);
    }
  }

  #readHead(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf(headEnd);
    if (end < 0) {
      if (bytes.length > maxHeadBytes) throw new Error(`response headers above ${maxHeadBytes} bytes`);
      return undefined;
    }
    const head = bytes.toString("latin1", 0, end);
    const status = /^HTTP\/1\.([01]) (\d{3})/.exec(head);
    if (status === null) throw new Error(`not an HTTP/1.1 response: ${JSON.stringify(head.slice(0, 40))}`);
    const rest = bytes.subarray(end + headEnd.length);
    this.status = Number(status[2]);
    // An interim response (100 Continue, 103 Early Hints) announces the real one.
    if (this.status < 200) return rest;

    this.retryAfterMs = this.status === 429 || this.status === 503 ? retryAfterMsOf(head) : undefined;
    const connection = /\r\nconnection:[ \t]*([^\r]*)/i.exec(head)?.[1]?.toLowerCase() ?? "";
    this.keepAlive = status[1] === "1" ? !connection.includes("close") : connection.includes("keep-alive");
    if (this.status === 204 || this.status === 304) this.#state = "done";
    else if (/\r\ntransfer-encoding:[^\r]*chunked/i.test(head)) this.#state = "chunk-size";
    else {
      const length = /\r\ncontent-length:[ \t]*(\d+)/i.exec(head)?.[1];
      if (length === undefined) this.#state = "until-close";
      else {
        this.#remainingBytes = Number(length);
        this.#state = this.#remainingBytes === 0 ? "done" : "body";
      }
    }
    return rest;
  }

  #readBody(bytes: Buffer): Buffer {
    const taken = Math.min(this.#remainingBytes, bytes.length);
    this.#keep(bytes.subarray(0, taken));
    this.#remainingBytes -= taken;
    if (this.#remainingBytes === 0) this.#state = this.#state === "chunk" ? "chunk-end" : "done";
    return bytes.subarray(taken);
  }

  #readLine(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf("\r\n");
    if (end < 0) {
      if (bytes.length > maxLineBytes) throw new Error(`a chunk line above ${maxLineBytes} bytes`);
      return undefined;
    }
    if (this.#state === "chunk-end") this.#state = "chunk-size";
    else if (this.#state === "trailer") this.#state = end === 0 ? "done" : "trailer";
    else {
      const line = bytes.toString("latin1", 0, end);
      if (!/^[\da-fA-F]{1,12}[ \t]*(;|$)/.test(line)) throw new Error(`bad chunk size ${JSON.stringify(line)}`);
      this.#remainingBytes = parseInt(line, 16);
      this.#state = this.#remainingBytes === 0 ? "trailer" : "chunk";
    }
    return bytes.subarray(end + 2);
  }

  #keep(bytes: Buffer): void {
    if (this.#bodyBytes >= keptBodyBytes) return;
    // A copy: a slice would keep the whole receive buffer alive.
    const part = Buffer.from(bytes.subarray(0, keptBodyBytes - this.#bodyBytes));
    this.#body.push(part);
    this.#bodyBytes += part.length;
  }
}

function retryAfterMsOf(head: string): number | undefined {
  const ms = /\r\nretry-after-ms:[ \t]*(\d+)/i.exec(head)?.[1];
  if (ms !== undefined) return Number(ms);
  const seconds = /\r\nretry-after:[ \t]*(\d+)/i.exec(head)?.[1];
  return seconds === undefined ? undefined : 1000 * Number(seconds);
}
