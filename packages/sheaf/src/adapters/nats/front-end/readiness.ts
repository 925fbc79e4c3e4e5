import type { Fault } from "./availability.ts";
import type { Call } from "./call.ts";
import type { QueueConnection } from "../wire/connection.ts";
import { QueueProvisioner } from "../queue/provisioner.ts";
import { Routing } from "./routing.ts";
import type { QueueSettings } from "../queue/options.ts";
import { namesOf } from "../queue/topology.ts";
import { brief, fits } from "../queue/versions.ts";
import { workerInfoOf } from "../queue/worker-registry.ts";

export interface ReadinessEvents {
  /** Calls that the queue has accepted. */
  accepted(): readonly Call[];
  /** The queue was lost and has been created again. */
  lost(call: Call): void;
  /** The queue is there: it was looked for after each time that the connection came back. */
  found(queue: "the same" | "another"): void;
  /** At the workers that there are: one may have come or gone. */
  looked(): void;
}

/** Whether a front end can be used: its queue exists, and a worker serves it. Notices a lost queue. */
export class Readiness {
  readonly routing: Routing;
  readonly ready: Promise<void>;
  /** It can never be used any more; `ready` rejects with the reason, unless it was ready. */
  fail: (reason: Error) => void = () => undefined;
  readonly #settings: QueueSettings;
  readonly #link: QueueConnection;
  readonly #events: ReadinessEvents;
  readonly #provisioner: QueueProvisioner;
  #isReady: () => void = () => undefined;
  #identity: string | undefined;
  /** Calls accepted before a disconnect or a deletion of the queue: lost if the queue turns out to be another one. */
  #mayBeLost: readonly Call[] = [];
  #warnedOf: string | undefined;

  constructor(settings: QueueSettings, link: QueueConnection, events: ReadinessEvents) {
    this.#settings = settings;
    this.#link = link;
    this.#events = events;
    this.routing = new Routing(settings, () => this.#looked());
    this.ready = new Promise((resolve, reject) => {
      this.#isReady = resolve;
      this.fail = reject;
    });
    // The caller of `ready` gets the reason.
    this.ready.catch(() => undefined);
    this.#provisioner = new QueueProvisioner(settings, undefined, (identity) => this.#queueFound(identity));
  }

  /** The connection is up and does not answer, or the queue cannot be used, as the last check of it says. */
  get fault(): Fault | undefined {
    const { refusal, unavailableReason } = this.#link;
    const isHeld = refusal === undefined && this.#identity !== undefined;
    if (unavailableReason !== undefined) return { reason: unavailableReason, isHeld, isLogged: refusal !== undefined };
    const reason = this.#provisioner.unavailableReason;
    return reason === undefined ? undefined : { reason, isHeld, isLogged: true };
  }

  /** Creates the queue, and follows the reports of workers and the server about it. */
  begin(): void {
    this.#link.subscribe(namesOf(this.#settings).alive, ({ data }) => {
      this.routing.heard(workerInfoOf(data));
    });
    if (this.#settings.durability !== "none") this.#provisioner.watch(this.#link, () => this.suspectLoss());
    this.#provisioner.provision();
  }

  /** The queue may have been replaced. */
  suspectLoss(): void {
    this.#mayBeLost = this.#events.accepted();
  }

  /** The connection is back. */
  provision(): void {
    this.#provisioner.provision();
  }

  /** The server has no such queue. */
  provisionSoon(): void {
    this.#provisioner.provisionSoon();
  }

  stop(): void {
    this.routing.stop();
    this.#provisioner.stop();
  }

  #queueFound(identity: string): void {
    const isAnother = this.#identity !== undefined && this.#identity !== identity;
    if (isAnother) for (const call of this.#mayBeLost) this.#events.lost(call);
    this.#mayBeLost = [];
    this.#identity = identity;
    if (this.#link.isConnected) this.#events.found(isAnother ? "another" : "the same");
    this.#link.publish(namesOf(this.#settings).discover);
    this.#readyOnce();
  }

  #looked(): void {
    this.#readyOnce();
    this.#warnOfStrangers();
    this.#events.looked();
  }

  /** Once each time that all workers there serve something else. */
  #warnOfStrangers(): void {
    const { queue, serves, warn } = this.#settings;
    const { domainConflict } = this.routing;
    if (domainConflict !== undefined) {
      if (this.#warnedOf !== domainConflict) warn(`sheaf: the queue ${queue}: ${domainConflict}.`);
      return void (this.#warnedOf = domainConflict);
    }
    const strangers = this.routing.others.filter((other) => !fits(serves, other.serves));
    const stranger = this.routing.workers.length > 0 ? undefined : strangers[0];
    if (stranger?.serves === this.#warnedOf) return;
    this.#warnedOf = stranger?.serves;
    if (stranger === undefined) return;
    warn(
      `sheaf: the queue ${queue}: this front end calls ${brief(serves)}, its workers serve ${brief(stranger.serves)}; start all with the same model.`,
    );
  }

  #readyOnce(): void {
    if (this.#identity !== undefined && this.routing.workers.length > 0) this.#isReady();
  }
}
