import type { BatchRecord } from "../../../policies/policy.ts";
import type { QueueConnection } from "../wire/connection.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { QueueNames } from "../queue/topology.ts";
import type { WorkerInfo } from "../queue/worker-registry.ts";

/** Speeds change: the figures of a batch are forgotten after this. */
const speedKeptMs = 60_000;
const answerEveryMs = 100;

/** Tells front ends that a worker is alive, and how fast it is. */
export class Heartbeat {
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: QueueConnection;
  readonly #about: () => Omit<WorkerInfo, "runMs" | "runSize">;
  #saidAtMs = -Infinity;
  #cancelAnswer: (() => void) | undefined;
  /** Of the largest batch lately; of a smaller one that was faster, for then the largest met a pause. */
  #speed: { readonly runMs: number; readonly size: number; readonly atMs: number } | undefined;

  constructor(
    settings: QueueSettings,
    names: QueueNames,
    link: QueueConnection,
    about: () => Omit<WorkerInfo, "runMs" | "runSize">,
  ) {
    this.#settings = settings;
    this.#names = names;
    this.#link = link;
    this.#about = about;
  }

  observe({ size, runMs, outcome }: BatchRecord): void {
    if (outcome !== "ok") return;
    const atMs = this.#settings.clock.now();
    const known = this.#speed;
    const isBetter = known === undefined || size >= known.size || size * known.runMs > known.size * runMs;
    if (isBetter || atMs - known.atMs > speedKeptMs) this.#speed = { runMs, size, atMs };
  }

  /**
   * A front end asks which workers are alive. All get the answer: when a thousand ask at once, one answer serves all.
   */
  asked(): void {
    const { clock } = this.#settings;
    const dueInMs = this.#saidAtMs + answerEveryMs - clock.now();
    if (dueInMs <= 0) this.beat();
    else this.#cancelAnswer ??= clock.after(dueInMs, () => this.beat());
  }

  beat(): void {
    this.#cancelAnswer?.();
    this.#cancelAnswer = undefined;
    this.#saidAtMs = this.#settings.clock.now();
    this.#link.publish(this.#names.alive, JSON.stringify(this.info));
  }

  get info(): WorkerInfo {
    const { runMs = 0, size: runSize = 0 } = this.#speed ?? {};
    return { ...this.#about(), runMs, runSize };
  }

  /** The last heartbeat: the worker is gone. A front end that has asked gets no other answer. */
  announceEnd(): void {
    this.#cancelAnswer?.();
    this.#link.publish(this.#names.alive, JSON.stringify({ ...this.info, slots: 0 }));
  }
}
