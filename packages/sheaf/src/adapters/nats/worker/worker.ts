import type { Batcher, BatcherCapacity, BatcherPending } from "../../../core/contract/batcher.ts";
import { checkFunction, checkText, closeChecks, oneOf, withOptions, type Closing } from "../../../shared/checks.ts";
import { insideOf, type Inside } from "../../../core/wrap-batcher.ts";
import { describe } from "../../../shared/describe.ts";
import { recordedSettings } from "../../../shared/recorded-settings.ts";
import { Arrivals } from "./arrivals.ts";
import { PoisonMode } from "./poison-mode.ts";
import type { NatsSubscription } from "../wire/client.ts";
import { DeadLetters } from "../queue/dead-letters.ts";
import { AckKind } from "./delivery.ts";
import { laneFigures, type LaneFigures } from "../queue/lane-figures.ts";
import { InFlight } from "./in-flight.ts";
import { FlowControl } from "./flow-control.ts";
import { QueueConnection } from "../wire/connection.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Pulls } from "./pulls.ts";
import { QueueProvisioner } from "../queue/provisioner.ts";
import { domainOf, lanes, queueSettings, type NatsQueueOptions, type QueueSettings } from "../queue/options.ts";
import { Replies } from "./replies.ts";
import { ItemRuns } from "./runs.ts";
import { Succession } from "./others/succession.ts";
import { Peers } from "./others/peers.ts";
import { Redeliveries } from "./redeliveries.ts";
import { Timers } from "./timers.ts";
import { namesOf, type QueueNames } from "../queue/topology.ts";
import { routeOf } from "../queue/versions.ts";
import { aliveEveryMs, type WorkerInfo } from "../queue/worker-registry.ts";

/** Counts of items at a worker, by outcome. */
export interface WorkerCounts {
  readonly delivered: number;
  readonly redelivered: number;
  readonly expired: number;
  readonly cancelled: number;
  readonly handedBack: number;
  readonly deadLetters: number;
}

/** Options of `natsWorker`: those of the queue, and those of a worker alone. */
export interface NatsWorkerOptions extends NatsQueueOptions {
  /**
   * The version of the model that runs here, in any words. Front ends send items to one version at a time: a new one
   * takes over when as many slots serve it as serve the one before.
   * @default none, which is a version of its own
   */
  readonly version?: string | undefined;
  /**
   * False while the batcher cannot run anything: no item is taken then.
   * @default always true
   */
  readonly isServing?: (() => boolean) | undefined;
  /**
   * Batches run in a process of their own, as with `workerProcess()`: an item that crashes it leaves this process alive. Then the
   * items of a worker that has ended run here at once, also where this is the only worker left.
   * @default false
   */
  readonly isIsolated?: boolean | undefined;
}

export interface NatsWorker {
  /** Resolves when the batcher is ready and items are taken; rejects with the reason it never will. */
  ready(): Promise<void>;
  /** Counts of items here since the start, by outcome. */
  readonly counts: WorkerCounts;
  /** Why it gets no items; undefined while it gets some. */
  readonly unavailableReason: string | undefined;
  /** The lanes as the NATS server counts them. */
  figures(): Promise<readonly LaneFigures[]>;
  /**
   * Takes no more, finishes the items it has begun, gives back the others. After `graceMs` the rest goes
   * back too. The batcher and the connection stay yours to close.
   */
  drain(options?: {
    /**
     * Time for running items to finish, in milliseconds.
     * @default none: as long as they take
     */
    readonly graceMs?: number | undefined;
  }): Promise<void>;
}

/** The part of a batcher that a worker uses. */
export type WorkerBatcher<In, Out> = Pick<
  Batcher<In, Out>,
  "detailed" | "capacity" | "pending" | "ready" | "subscribe"
>;

/**
 * The side of a NATS queue where batches run: answers callers with the batcher's results. Takes no
 * more than its free slots can run, so that items wait where every worker can take them.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 * @experimental It may change in any minor version.
 */
export const natsWorker = <In, Out>(batcher: WorkerBatcher<In, Out>, options: NatsWorkerOptions): NatsWorker =>
  new QueueWorker(batcher, options);

/** With more a worker would ask for more than the others leave it. */
const maxSlots = 1024;

class QueueWorker implements NatsWorker {
  readonly #id: string = crypto.randomUUID();
  readonly #limits: BatcherCapacity;
  readonly #inside: Partial<Inside> | undefined;
  readonly #isReady: Promise<void>;
  #isTaking: () => void = () => undefined;
  #drained: Promise<void> | undefined;
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: QueueConnection;
  readonly #replies: Replies;
  readonly #pulls: Pulls;
  readonly #redeliveries: Redeliveries;
  readonly #deadLetters: DeadLetters;
  readonly #inFlight: InFlight = new InFlight();
  readonly #poisonMode: PoisonMode;
  readonly #provisioner: QueueProvisioner;
  readonly #heartbeat: Heartbeat;
  readonly #peers: Peers;
  readonly #succession: Succession;
  readonly #timers: Timers;
  readonly #flowControl: FlowControl;
  readonly #runs: ItemRuns;
  readonly #arrivals: Arrivals;
  readonly #endRecords: () => void;
  readonly #isServing: () => boolean;
  /** The queue and its consumers exist; always false without JetStream. */
  #isEnsured = false;
  #isStopping = false;
  /** The identity of the queue. */
  #queue: string | undefined;
  readonly #version: string | undefined;
  readonly #route: string;
  /** Core NATS: the subscriptions that items are pushed to. */
  readonly #pushed: NatsSubscription[] = [];

  constructor(batcher: WorkerBatcher<unknown, unknown>, options: NatsWorkerOptions) {
    const { isServing = () => true, isIsolated = false, version } = options;
    if (typeof (batcher as Partial<typeof batcher> | null)?.detailed !== "function")
      throw new TypeError(`natsWorker needs a batcher, such as createBatcher(run) makes, got ${describe(batcher)}`);
    this.#isServing = () => isServing();
    this.#version = version;
    const settings = (this.#settings = queueSettings(options, {
      isServing: checkFunction,
      isIsolated: oneOf(true, false),
      version: checkText,
    }));
    const names = (this.#names = namesOf(settings));
    const route = (this.#route = routeOf(settings.serves, version));
    const { maxBatchSize, concurrency } = batcher.capacity;
    const limits = {
      maxBatchSize: Math.min(maxBatchSize, settings.maxQueueSize),
      concurrency: Math.min(concurrency, maxSlots),
    };
    this.#limits = limits;
    this.#inside = insideOf(batcher);
    const link = (this.#link = new QueueConnection(settings, {
      disconnected: () => this.#pulls.forget(),
      reconnected: () => this.#reconnected(),
      closed: () => this.#pulls.forget(),
    }));
    this.#timers = new Timers(settings.clock);
    this.#poisonMode = new PoisonMode(settings, () => link.publish(names.careful));
    this.#provisioner = new QueueProvisioner(settings, route, (identity) => this.#queueFound(identity));
    this.#replies = new Replies(settings, link, this.#id);
    this.#heartbeat = new Heartbeat(settings, names, link, () => this.#about());
    this.#peers = new Peers(settings, names, link, () => {
      this.#succession.look();
      this.#redeliveries.look();
    });
    this.#succession = new Succession({
      settings,
      names,
      link,
      peers: this.#peers,
      about: () => this.#heartbeat.info,
      changed: () => this.#heartbeat.beat(),
    });
    this.#deadLetters = new DeadLetters(settings, names, link);
    this.#runs = new ItemRuns({
      batcher,
      settings,
      link,
      inFlight: this.#inFlight,
      replies: this.#replies,
      deadLetters: this.#deadLetters,
      ended: () => this.#advanceSoon(),
      closed: () => void this.drain(),
    });
    this.#pulls = new Pulls(settings, names, route, link, {
      arrived: (message, token) => this.#arrivals.fromQueue(message, token),
      quiet: () => this.#flowControl.advance(),
      refused: () => {
        // Asked again at once, a queue without a leader would refuse as fast as it is asked.
        this.#isEnsured = false;
        this.#provisioner.provisionSoon();
      },
    });
    this.#redeliveries = new Redeliveries({
      settings,
      workerId: this.#id,
      isIsolated,
      route,
      peers: this.#peers,
      timers: this.#timers,
      clear: (delivery) => {
        this.#flowControl.add(delivery);
        this.#flowControl.advance();
      },
      suspected: () => this.#poisonMode.suspectSeen(),
      runAlone: (delivery) => this.#runs.run(delivery, "alone"),
      drop: (delivery) => this.#runs.drop(delivery),
      handBack: (delivery) => this.#runs.handBack(delivery),
      settled: () => this.#runs.settled(),
      isIdle: () => this.#flowControl.isIdle,
      changed: () => this.#heartbeat.beat(),
      idle: () => this.#flowControl.advance(),
    });
    const pending = (): BatcherPending => batcher.pending;
    this.#flowControl = new FlowControl({
      limits,
      pending,
      poisonMode: this.#poisonMode,
      timers: this.#timers,
      pulls: this.#pulls,
      state: () => this.#state(),
      run: (delivery) => void this.#runs.run(delivery, "shared"),
      handBack: (delivery) => this.#runs.handBack(delivery),
    });
    this.#arrivals = new Arrivals({
      settings,
      link,
      pending,
      inFlight: this.#inFlight,
      redeliveries: this.#redeliveries,
      flowControl: this.#flowControl,
      runs: this.#runs,
      replies: this.#replies,
      isTaking: () => !this.#isStopping && this.#isServing(),
    });
    this.#endRecords = batcher.subscribe((record) => {
      this.#replies.observe(record);
      this.#heartbeat.observe(record);
      this.#advanceSoon();
    });
    const taking = new Promise<void>((resolve) => (this.#isTaking = resolve));
    this.#isReady = batcher.ready().then(() => {
      this.#begin();
      return taking;
    });
    this.#isReady.catch(() => undefined);
  }

  ready(): Promise<void> {
    return this.#isReady;
  }

  get counts(): WorkerCounts {
    return { ...this.#arrivals.counts, ...this.#runs.counts, deadLetters: this.#deadLetters.count };
  }

  get unavailableReason(): string | undefined {
    if (!this.#link.isConnected) return "the connection to NATS is down";
    const { unavailableReason, wasProvisioned } = this.#provisioner;
    return (
      this.#link.unavailableReason ??
      unavailableReason ??
      (wasProvisioned ? this.#succession.unavailableReason : "the queue is not there yet")
    );
  }

  figures(): Promise<LaneFigures[]> {
    return laneFigures(this.#settings);
  }

  readonly drain = withOptions(
    closeChecks,
    ({ graceMs = Infinity }: Closing): Promise<void> => (this.#drained ??= this.#drain(graceMs)),
  );

  /** Starts to take items. A missing queue is created, now or as soon as NATS allows it. */
  #begin(): void {
    if (this.#isStopping) return;
    this.#link.subscribe(this.#names.cancel, ({ data }) => this.#inFlight.cancel(data), { need: "optional" });
    this.#link.subscribe(this.#names.discover, () => this.#heartbeat.asked(), { need: "optional" });
    // A worker that has just started may have been started because of a poisonous item.
    this.#poisonMode.begin();
    this.#link.subscribe(
      this.#names.worker(this.#id),
      ({ data, reply }) => {
        // Without a token it is only asked whether it is there, which NATS knows.
        if (reply && data.byteLength > 0) this.#link.publish(reply, JSON.stringify(this.#inFlight.keysOf(data)));
      },
      { need: "optional" },
    );
    if (this.#settings.durability === "none") {
      for (const lane of lanes)
        this.#pushed.push(
          this.#link.subscribe(this.#names.lane(this.#route, lane), (message) => this.#arrivals.pushed(message, lane), {
            queue: "workers",
          }),
        );
      this.#provisioner.provision();
    } else {
      this.#link.subscribe(this.#names.careful, () => this.#poisonMode.begin(), { need: "optional" });
      this.#deadLetters.watch();
      this.#provisioner.watch(this.#link, () => this.#pulls.forget());
      this.#provisioner.provision();
      this.#signalProgress();
    }
    // Others that are there must get its announcement before its first heartbeat.
    this.#succession.begin();
    this.#tick();
  }

  async #drain(graceMs: number): Promise<void> {
    this.#isStopping = true;
    // Anything that waits for it to take items stops waiting.
    this.#isTaking();
    this.#heartbeat.beat();
    await this.#pulls.stop();
    await this.#link.part(() => Promise.all(this.#pushed.map((subscription) => subscription.drain())));
    for (const delivery of [...this.#flowControl.empty(), ...this.#redeliveries.stop()]) this.#runs.handBack(delivery);
    await this.#runs.idle(graceMs);
    this.#endRecords();
    this.#provisioner.stop();
    this.#timers.cancelAll();
    this.#peers.stop();
    this.#heartbeat.announceEnd();
    await this.#link.part(() => this.#settings.connection.flush());
    this.#link.close();
  }

  #queueFound(identity: string): void {
    this.#isTaking();
    if (this.#queue !== undefined && this.#queue !== identity) this.#inFlight.forgetQueue();
    this.#queue = identity;
    if (this.#settings.durability === "none") return this.#heartbeat.beat();
    // Requests to a consumer that did not exist are lost silently.
    this.#pulls.forget();
    this.#isEnsured = true;
    this.#heartbeat.beat();
    this.#flowControl.advance();
  }

  #reconnected(): void {
    this.#replies.sendUnsent();
    this.#isEnsured = false;
    if (this.#settings.durability !== "none") this.#provisioner.provision();
  }

  #state(): "taking" | "waiting" | "handing back" {
    if (!this.#isEnsured || this.#isStopping || !this.#link.isConnected || this.#redeliveries.isBusy) return "waiting";
    return this.#isServing() ? "taking" : "handing back";
  }

  #advanceSoon(): void {
    this.#timers.after("turn", 0, () => this.#flowControl.advance());
  }

  /** Reports everything here as being worked on. Not from the model's thread: a hung process reports nothing. */
  #signalProgress(): void {
    const { clock, ackWaitMs } = this.#settings;
    for (const { ack } of this.#inFlight.silent(clock.now(), ackWaitMs / 3))
      if (ack !== undefined) this.#link.publish(ack, AckKind.working);
    this.#timers.after("progress", ackWaitMs / 6, () => this.#signalProgress());
  }

  #tick(): void {
    this.#heartbeat.beat();
    this.#succession.look();
    this.#redeliveries.look();
    this.#flowControl.advance();
    this.#timers.after("tick", aliveEveryMs, () => this.#tick());
  }

  #about(): Omit<WorkerInfo, "runMs" | "runSize"> {
    const { concurrency: slots, maxBatchSize } = this.#limits;
    const { serves } = this.#settings;
    const takesItems = this.#provisioner.wasProvisioned && this.#link.refusal === undefined;
    const isServing = takesItems && !this.#isStopping && this.#isServing();
    const { generation } = this.#succession;
    const version = this.#version;
    return {
      id: this.#id,
      slots,
      maxBatchSize,
      isServing,
      serves,
      version,
      route: this.#route,
      generation,
      domain: domainOf(this.#settings),
      suspects: this.#redeliveries.state,
      frontEnds: this.#arrivals.frontEnds.count(this.#settings.clock.now()),
      settings: this.#inside?.settings && recordedSettings(this.#inside.settings),
    };
  }
}

declare const crypto: { randomUUID(): string };
