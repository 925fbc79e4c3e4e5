import { Worker } from "node:worker_threads";
import type { Orders } from "./lines-thread.ts";

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly code: string | undefined };
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** The thread that reads and writes the lines of batches: their JSON never delays a live request. */
export class LinesThread {
  readonly #worker: Worker;
  readonly #waiting: Map<number, Waiting> = new Map();
  #lastId = 0;
  #failure: Error | undefined;

  constructor() {
    this.#worker = new Worker(new URL("./lines-thread.js", import.meta.url), { env: {} });
    this.#worker.unref();
    this.#worker.on("message", ({ id, result, error }: Answer) => {
      const waiting = this.#waiting.get(id)!;
      this.#waiting.delete(id);
      if (error === undefined) waiting.resolve(result);
      else waiting.reject(Object.assign(new Error(error.message), { code: error.code }));
    });
    const failed = (error: Error): void => {
      this.#failure ??= error;
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    };
    this.#worker.on("error", failed).on("exit", () => failed(new Error("The thread of batches has ended.")));
  }

  do<Name extends keyof Orders>(name: Name, order: Parameters<Orders[Name]>[0]): ReturnType<Orders[Name]> {
    return new Promise<unknown>((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#waiting.set(++this.#lastId, { resolve, reject });
      this.#worker.postMessage({ id: this.#lastId, name, order });
    }) as ReturnType<Orders[Name]>;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
