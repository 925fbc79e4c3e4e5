import type { Readable } from "node:stream";
import { workerError } from "./worker-error.ts";

const longestLine = 8192;
const tailLines = 50;

/** Beginnings of the lines in which Python, Go, Rust and `sheaf_worker` say why they end. */
const lastWordsOf = /^(Fatal |panic: |thread '|sheaf_worker: |[\w.]*(Error|Exception)\b)/;

/** A worker's output, line by line, and the line that says why it ended. */
export class OutputLines {
  readonly #onLine: (line: string) => void;
  #tail: string[] = [];

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  /** Reads until the stream ends. A line that is too long comes in pieces. */
  read(stream: Readable): void {
    let rest = "";
    stream.setEncoding("utf8");
    stream.on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.#line(line);
      for (; rest.length > longestLine; rest = rest.slice(longestLine)) this.#line(rest.slice(0, longestLine));
    });
    stream.on("end", () => rest !== "" && this.#line(rest));
    stream.on("error", () => undefined);
  }

  /** Forgets the last lines: later output belongs to something else. */
  forget(): void {
    if (this.#tail.length > 0) this.#tail = [];
  }

  get lastWords(): string | undefined {
    // No other line, because the error goes to a caller and a model's output may hold other callers' data.
    return this.#tail.findLast((line) => lastWordsOf.test(line));
  }

  /** The exception whose traceback Python wrote as it ended, with its type and its place; undefined without one. */
  get exception(): Error | undefined {
    const [line, type, message = ""] = /^([\w.]+)(?:: (.*))?$/.exec(this.lastWords ?? "") ?? [];
    const start = this.#tail.findLastIndex((one) => one.startsWith("Traceback "));
    if (line === undefined || start < 0) return undefined;
    return workerError({ type, message, traceback: this.#tail.slice(start).join("\n") });
  }

  #line(line: string): void {
    for (let at = 0; at === 0 || at < line.length; at += longestLine) this.#onLine(line.slice(at, at + longestLine));
    if (line.trim() === "") return;
    this.#tail.push(line.slice(0, 500));
    if (this.#tail.length > tailLines) this.#tail.shift();
  }
}
