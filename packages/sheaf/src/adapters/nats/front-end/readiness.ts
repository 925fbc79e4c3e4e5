import type { Call } from "./call.ts";
import type { Link } from "../wire/connection.ts";
import { QueueKeeper } from "../queue/provisioner.ts";
import type { QueueSettings } from "../queue/options.ts";
import { namesOf } from "../queue/topology.ts";
import { workerInfoOf, WorkersSeen } from "./worker-registry.ts";

export interface StandingEvents {
  /** Those that the queue has, by now. */
  accepted(): readonly Call[];
  /** The queue that had it is another one now. */
  lost(call: Call): void;
}

/** Whether a front end can be used: its queue is there, and a worker serves it. Notices a queue that was lost. */
export class Standing {
  readonly workers: WorkersSeen;
  readonly ready: Promise<void>;
  readonly #settings: QueueSettings;
  readonly #link: Link;
  readonly #events: StandingEvents;
  readonly #keeper: QueueKeeper;
  #isReady: () => void = () => undefined;
  #identity: string | undefined;
  /** Accepted before a cut, or before somebody deleted the queue: gone, should it turn out to be another one. */
  #mayBeLost: readonly Call[] = [];

  constructor(settings: QueueSettings, link: Link, events: StandingEvents) {
    this.#settings = settings;
    this.#link = link;
    this.#events = events;
    this.workers = new WorkersSeen(settings.clock);
    this.ready = new Promise((resolve) => (this.#isReady = resolve));
    this.#keeper = new QueueKeeper(settings, "front-end", (identity) => this.#kept(identity));
  }

  /** Why the queue cannot be used, where it cannot. */
  get trouble(): string | undefined {
    return this.#link.refusal ?? this.#keeper.trouble;
  }

  /** Sees to the queue, and listens to what workers and the server say of it. */
  begin(): void {
    this.#link.subscribe(namesOf(this.#settings).alive, ({ data }) => {
      this.workers.heard(workerInfoOf(data));
      this.#readyOnce();
    });
    this.workers.begin();
    if (this.#settings.durability !== "none") this.#keeper.watch(this.#link, () => this.doubt());
    this.#keeper.keep();
  }

  /** Something happened after which the queue may be another one. */
  doubt(): void {
    this.#mayBeLost = this.#events.accepted();
  }

  /** The connection is back. */
  lookNow(): void {
    this.#keeper.keep();
  }

  /** The server knows no such queue. */
  lookSoon(): void {
    this.#keeper.keepSoon();
  }

  stop(): void {
    this.workers.stop();
    this.#keeper.stop();
  }

  #kept(identity: string): void {
    const isAnother = this.#identity !== undefined && this.#identity !== identity;
    if (isAnother) for (const call of this.#mayBeLost) this.#events.lost(call);
    this.#mayBeLost = [];
    this.#identity = identity;
    this.#link.publish(namesOf(this.#settings).who);
    this.#readyOnce();
  }

  #readyOnce(): void {
    if (this.#identity !== undefined && this.workers.list().length > 0) this.#isReady();
  }
}
