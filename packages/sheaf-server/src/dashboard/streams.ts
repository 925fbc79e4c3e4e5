import { PassThrough } from "node:stream";
import type { Ticks } from "./ticks.ts";

/**
 * Sends every tick to every open stream as server-sent events. A reader that is too slow misses ticks. Where `most` are
 * open, a new one takes the place of one that is not read, or of the oldest of the address with the most: nobody keeps others
 * out by staying, or by opening many.
 */
export class Streams {
  /** With the address of each reader; the oldest first. */
  readonly #streams = new Map<PassThrough, string>();
  readonly #unsubscribe: () => void;
  readonly #ticks: Ticks;
  readonly #greet: () => unknown;
  readonly #most: number;
  /** The first event of a stream, until the next tick: a thousand viewers who come back at once cost one of it. */
  #hello: string | undefined;

  /** `greet` gives the first event of a stream, which comes again where there is something else to see. */
  constructor(ticks: Ticks, greet: () => unknown, most: number) {
    this.#ticks = ticks;
    this.#greet = greet;
    this.#most = most;
    ticks.onChange(() => {
      this.#hello = undefined;
      if (this.#streams.size > 0) this.#send(event("hello", greet()));
    });
    this.#unsubscribe = ticks.subscribe((tick) => {
      this.#hello = undefined;
      if (this.#streams.size === 0) return;
      this.#send(event("tick", tick));
    });
  }

  #send(text: string): void {
    for (const stream of this.#streams.keys()) if (!stream.writableNeedDrain) stream.write(text);
  }

  /** A stream that ends when its reader goes, or with `close`. */
  open(address: string): PassThrough {
    if (this.#streams.size >= this.#most) this.#evict();
    this.#ticks.refresh();
    this.#hello ??= event("hello", this.#greet());
    const stream = new PassThrough({ highWaterMark: 1024 * 1024 });
    this.#streams.set(stream, address);
    stream.once("close", () => this.#streams.delete(stream));
    // How long a browser's own EventSource waits before it comes back.
    stream.write(`retry: 1000\n\n${this.#hello}`);
    return stream;
  }

  #evict(): void {
    const streams = [...this.#streams.keys()];
    const unread = streams.find((stream) => stream.writableNeedDrain);
    const counts = new Map<string, number>();
    for (const address of this.#streams.values()) counts.set(address, (counts.get(address) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const oldest = streams.find((stream) => counts.get(this.#streams.get(stream)!) === most)!;
    this.#streams.delete(unread ?? oldest);
    if (unread === undefined) oldest.end(event("evicted", { most: this.#most }));
    else unread.destroy();
  }

  close(): void {
    this.#unsubscribe();
    for (const stream of this.#streams.keys()) stream.end();
    this.#streams.clear();
  }
}

const event = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
