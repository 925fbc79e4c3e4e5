import type { BatchRecord } from "../../policies/policy.ts";
import type { Link } from "./link.ts";
import type { QueueSettings } from "./queue-options.ts";
import type { QueueNames } from "./topology.ts";
import type { WorkerInfo } from "./workers-seen.ts";

/** A faster or slower batch is soon of another time: figures of the largest one are forgotten after this. */
const largestKeptMs = 60_000;

/** What front ends know of a worker: that it is there, and how fast it is. */
export class Presence {
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: Link;
  readonly #about: () => Omit<WorkerInfo, "runMs" | "runSize">;
  #largest: { readonly runMs: number; readonly size: number; readonly atMs: number } | undefined;

  constructor(
    settings: QueueSettings,
    names: QueueNames,
    link: Link,
    about: () => Omit<WorkerInfo, "runMs" | "runSize">,
  ) {
    this.#settings = settings;
    this.#names = names;
    this.#link = link;
    this.#about = about;
  }

  observe({ size, runMs }: BatchRecord): void {
    const nowMs = this.#settings.clock.now();
    const isOld = this.#largest !== undefined && nowMs - this.#largest.atMs > largestKeptMs;
    if (this.#largest === undefined || isOld || size >= this.#largest.size)
      this.#largest = { runMs, size, atMs: nowMs };
  }

  sayAlive(): void {
    const { runMs = 0, size: runSize = 0 } = this.#largest ?? {};
    const info: WorkerInfo = { ...this.#about(), runMs, runSize };
    this.#link.publish(this.#names.alive, JSON.stringify(info));
  }
}
