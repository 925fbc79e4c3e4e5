import { AbortListeners } from "../../../core/queue/cancellation.ts";
import { BatcherError } from "../../../core/contract/errors.ts";
import { checkCallOptions } from "../../../core/contract/settings.ts";
import { Epochs } from "../../../core/queue/epochs.ts";
import type { Outcome } from "../../../core/queue/cancellation.ts";
import type { NatsDetailedResult } from "../wire/detailed-result.ts";
import { Availability } from "./availability.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { payloadOf, timedOut, unreadable, type Call, type StartedCall, type StartOptions } from "./call.ts";
import type { NatsMessage } from "../wire/client.ts";
import { DeadLetters } from "../queue/dead-letters.ts";
import { keyOf, replyOf, type Reply, type ReplyHead, type RequestHead } from "../wire/envelope.ts";
import { errorFrom, unavailable } from "../wire/errors.ts";
import { QueueConnection } from "../wire/connection.ts";
import { LostWorkers } from "./lost-workers.ts";
import { Outage } from "./outage.ts";
import { Publisher } from "./publisher.ts";
import { QueueLoad } from "./queue-load.ts";
import { newInbox, type QueueSettings } from "../queue/options.ts";
import type { Routing } from "./routing.ts";
import { SeenBatches } from "./seen-batches.ts";
import { Readiness } from "./readiness.ts";
import { namesOf, type QueueNames } from "../queue/topology.ts";

const longestId = 100;
/** Fewer than a worker remembers. */
const maxRepeated = 2048;

/** The options that concern the calls of a front end. */
interface CallSettings {
  readonly name: string;
  readonly maxBatchSize: number;
  readonly holdMs: number;
  readonly refuseLate: number | undefined;
}

export interface AnswerObserver {
  answered(call: Call, head: ReplyHead, nowMs: number): void;
}

/** The calls of a front end, by number: each settles exactly once, whatever arrives, twice or never. */
export class PendingCalls {
  readonly batches: SeenBatches;
  readonly load: QueueLoad;
  /** Called with each call that a worker has answered. */
  readonly observers: AnswerObserver[] = [];
  /** Of callers. */
  readonly signals: AbortListeners = new AbortListeners();
  readonly #settings: QueueSettings;
  readonly #name: string;
  readonly #names: QueueNames;
  readonly #link: QueueConnection;
  readonly #inbox: string;
  readonly #open: Map<string, Call> = new Map();
  /** How many of them are bulk. */
  bulk = 0;
  readonly #publishes: Publisher;
  readonly #epochs: Epochs = new Epochs();
  readonly #deadLetters: DeadLetters;
  readonly #readiness: Readiness;
  readonly #outage: Outage;
  readonly #availability: Availability;
  readonly #lostWorkers: LostWorkers;
  readonly #acks: Acknowledgements;
  /** Keys of unconfirmed items whose callers have left: workers hear of them again when the queue is there. */
  readonly #cancelled: string[] = [];
  #next = 0;
  #lateReplies = 0;
  #closing: Promise<void> | undefined;

  constructor(settings: QueueSettings, own: CallSettings) {
    const { name, maxBatchSize } = own;
    this.#settings = settings;
    this.#name = name;
    this.#names = namesOf(settings);
    this.batches = new SeenBatches(name, maxBatchSize);
    this.#inbox = newInbox(settings);
    this.#link = new QueueConnection(settings, {
      disconnected: () => this.#disconnected(),
      reconnected: () => {
        // Not at the first connection: then no worker can have been cut off from it.
        if (this.#acks.isSuspended) this.#lostWorkers.cutOff();
        this.#outage.reconnected();
        this.#readiness.provision();
      },
      closed: () => this.#gone(),
    });
    this.#acks = new Acknowledgements(settings, this.#link);
    this.#readiness = new Readiness(settings, this.#link, {
      accepted: () => [...this.#open.values()].filter(({ admitted }) => admitted === undefined),
      lost: (call) => this.#lost(call),
      looked: () => this.#move(),
      found: (queue) => this.#found(queue),
    });
    this.#outage = new Outage(settings, own, {
      release: (call) => this.#release(call),
      refuse: (call, error) => this.#refusedHeld(call, error),
    });
    const drainMs = (items: number): number | undefined => this.routing.drainMs(items);
    this.load = new QueueLoad({ ...own, settings, link: this.#link, drainMs });
    this.#publishes = new Publisher(
      settings,
      this.#link,
      { inbox: this.#inbox, name, load: this.load, holdMs: own.holdMs },
      {
        accepted: (call, sequence) => this.#accepted(call, sequence),
        refused: (call, error) => this.#refused(call, error),
        unanswered: (call, error) => this.#cancel(call, "rejected", error),
        missing: (call) => this.#missing(call),
      },
    );
    this.#deadLetters = new DeadLetters(settings, this.#names, this.#link);
    this.#link.subscribe(`${this.#inbox}.*`, (message) => this.#received(message));
    if (settings.durability !== "none") this.#deadLetters.watch();
    this.#lostWorkers = new LostWorkers({
      settings,
      names: this.#names,
      link: this.#link,
      routing: this.routing,
      token: keyOf({ f: this.#inbox, i: "" }),
      open: () => this.#open.values(),
      giveUp: (call) => this.#giveUp(call),
    });
    this.#availability = new Availability({
      settings,
      link: this.#link,
      holdMs: own.holdMs,
      fault: () => this.#outage.fault ?? this.#readiness.fault ?? this.#publishes.fault ?? this.load.fault,
      probe: () => this.#publishes.probe(this.routing.route),
      fell: (reason) => this.#fell(reason),
    });
    if (!this.isConnected) this.#outage.begin();
    this.#readiness.begin();
  }

  get routing(): Routing {
    return this.#readiness.routing;
  }

  get isConnected(): boolean {
    return this.#link.isConnected;
  }

  /** Why the queue cannot be used, where it cannot. */
  get unavailableReason(): string | undefined {
    return this.#outage.reason ?? this.#availability.reason ?? this.routing.domainConflict;
  }

  get counts(): { lateReplies: number; deadLetters: number; republished: number } {
    return {
      lateReplies: this.#lateReplies,
      deadLetters: this.#deadLetters.count,
      republished: this.#publishes.repeated,
    };
  }

  ready(): Promise<void> {
    return this.#readiness.ready;
  }

  /** Calls without a result. */
  get size(): number {
    return this.#open.size;
  }

  /** Arrival of the oldest bulk call without a result; `Infinity` without one. */
  get oldestBulkAtMs(): number {
    if (this.bulk > 0) for (const { lane, arrivedAtMs } of this.#open.values()) if (lane === "bulk") return arrivedAtMs;
    return Infinity;
  }

  /** @throws {BatcherError} `QUEUE_FULL` when so many items would probably be answered too late. */
  refuseLate(items: number, options: StartOptions): void {
    try {
      this.load.refuseLate(items, options);
    } catch (error) {
      this.batches.ended(options.priority ?? "interactive", "rejected", items);
      this.batches.arrived(items, options.timeoutMs);
      throw error;
    }
  }

  /** Resolves when all calls until now have settled. */
  drain(): Promise<void> {
    return this.#epochs.settlement(this.#epochs.seal(), true);
  }

  /** `turnMs`: how long it waited for its tenant's turn. */
  start(item: unknown, options: StartOptions, turnMs: number = 0): StartedCall {
    let call: Call | undefined;
    let admitted: (refusal?: Error) => void = () => undefined;
    const admission = new Promise<Error | undefined>((resolve) => (admitted = resolve));
    const result = new Promise<NatsDetailedResult<unknown>>((resolve, reject) => {
      try {
        call = this.#enter(item, options, { resolve, reject, admitted, turnMs });
      } catch (error) {
        this.batches.ended(
          options.priority ?? "interactive",
          options.signal?.aborted === true ? "aborted" : "rejected",
        );
        admitted(error as Error);
        reject(error);
      }
    });
    return {
      result,
      admission,
      withdraw: (reason) => {
        if (call !== undefined) this.#cancel(call, "rejected", reason);
      },
    };
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.drain().then(() => {
      this.#stop();
      this.#link.close();
    });
    if (graceMs !== Infinity) {
      const error = this.#closed(`closed; the call was cut off after ${graceMs} ms.`);
      void this.#closing.then(this.#settings.clock.after(graceMs, () => this.#failAll(error)));
    }
    return this.#closing;
  }

  #closed(message: string): BatcherError {
    return new BatcherError("CLOSED", `${this.#name}: ${message}`);
  }

  /** No timer may keep the process alive. */
  #stop(): void {
    this.#publishes.stop();
    this.#outage.stop();
    this.#lostWorkers.stop();
    this.#readiness.stop();
    this.#availability.stop();
    this.load.stop();
  }

  #enter(item: unknown, options: StartOptions, settle: Pick<Call, "resolve" | "reject" | "admitted" | "turnMs">): Call {
    const { signal, timeoutMs, priority = "interactive", alone = false, tag } = options;
    checkCallOptions(options);
    if (signal?.aborted === true) throw signal.reason;
    if (this.#closing !== undefined) throw this.#closed("closed.");
    if (timeoutMs > this.#settings.maxAgeMs)
      throw new RangeError(`timeoutMs must be at most ${this.#settings.maxAgeMs} (maxAgeMs), got ${timeoutMs}`);
    if (alone) throw new RangeError("alone cannot be true: only a worker chooses the items that share a batch");
    this.batches.arrived(1, timeoutMs);
    this.#outage.check();
    const { workers, others, route, domainConflict } = this.routing;
    if (domainConflict !== undefined) throw unavailable(`${this.#name}: ${domainConflict}.`);
    if (workers.length === 0 && others.length > 0)
      throw unavailable(`${this.#name}: the workers of this name serve another model. Start all with the same model.`);
    const { reason } = this.#availability;
    if (reason !== undefined && this.#publishes.isSilent) throw unavailable(`${this.#name}: ${reason}.`);
    this.#publishes.checkRoom(priority);
    const head: RequestHead = {
      f: this.#inbox,
      i: (this.#next++).toString(36),
      d: timeoutMs,
      t: typeof tag === "string" ? tag : undefined,
    };
    const payload = payloadOf(head, item, this.#settings, this.#name);
    const nowMs = this.#settings.clock.now();
    const onAbort = (): void => this.#cancel(call, "aborted", signal?.reason);
    const cancelTimer = this.#settings.clock.after(timeoutMs, () =>
      this.#cancel(call, "timeout", timedOut(this.#name, timeoutMs)),
    );
    // Not `...settle`: after a spread each further property takes a microsecond.
    const { resolve, reject, admitted, turnMs } = settle;
    const epoch = this.#epochs.current;
    epoch.unsettled++;
    const call: Call = {
      epoch,
      resolve,
      reject,
      admitted,
      head,
      payload,
      lane: priority,
      route,
      arrivedAtMs: nowMs,
      turnMs,
      publishedAtMs: nowMs,
      publishes: 0,
      sequence: undefined,
      movedFrom: undefined,
      aloneAt: undefined,
      deathsAlone: 0,
      handedBack: 0,
      release: () => {
        cancelTimer();
        if (signal !== undefined) this.signals.remove(signal, onAbort);
      },
    };
    if (signal !== undefined) this.signals.add(signal, onAbort);
    this.#open.set(head.i, call);
    if (priority === "bulk") this.bulk++;
    if (!this.#outage.hold(call)) this.#publishes.publish(call);
    return call;
  }

  #received(message: NatsMessage): void {
    const token = message.subject.slice(this.#inbox.length + 1);
    const call = this.#open.get(token.slice(1));
    if (token.startsWith("q")) {
      // The worker names itself when it is about to run it alone. Another one may have ended with it, unseen so far.
      const workerId = new TextDecoder().decode(message.data.subarray(0, longestId));
      if (call !== undefined && workerId !== "") (call.aloneAt ??= new Set()).add(workerId);
      const answer = call === undefined ? "0" : `1 ${this.routing.size.lately} ${call.deathsAlone} ${call.handedBack}`;
      if (isSubject(message.reply)) this.#link.publish(message.reply, answer);
    } else if (token.startsWith("h")) {
      const deliveries = Number(new TextDecoder().decode(message.data.subarray(0, longestId)));
      if (call !== undefined && deliveries === call.handedBack + 1) call.handedBack = deliveries;
    } else if (token.startsWith("a")) {
      this.#publishes.acknowledged(call, message);
    } else {
      this.#replied(call, message);
    }
  }

  #accepted(call: Call | undefined, sequence: number | undefined): void {
    if (!this.#outage.isTaking) this.#outage.end();
    if (call === undefined) return;
    call.sequence = sequence;
    this.#delete(call.movedFrom?.sequence);
    call.movedFrom = undefined;
    call.admitted?.();
    call.admitted = undefined;
  }

  #replied(call: Call | undefined, message: NatsMessage): void {
    const reply = this.#read(message);
    if (reply === undefined) {
      if (call !== undefined) this.#end(call, "error", unreadable(this.#name));
      return;
    }
    const { head, body } = reply;
    // This, and not the worker's reply, takes it out of the queue: if a result is lost, the item runs again.
    if (head.a?.startsWith("$JS.ACK.") === true) this.#acks.send(head.a, call !== undefined);
    if (call === undefined) {
      this.#lateReplies++;
      return;
    }
    const nowMs = this.#settings.clock.now();
    for (const observer of this.observers) observer.answered(call, head, nowMs);
    const latencyMs = nowMs - call.arrivedAtMs;
    const queueMs = Math.max(0, latencyMs - head.m);
    const batchId = this.batches.answered(head, queueMs, nowMs);
    this.batches.latencyMs[call.lane === "bulk" ? "bulk" : "live"].record(nowMs, latencyMs);
    if (head.e !== undefined) return this.#end(call, "error", errorFrom(head.e));
    let value: unknown;
    try {
      value = this.#settings.codec.decode(body);
    } catch (error) {
      return this.#end(call, "error", error);
    }
    if (!this.#forget(call, "ok")) return;
    call.resolve({ value, batchId, batchSize: head.n, queueMs, runMs: head.m, deliveries: head.c });
    call.epoch.settled(1);
  }

  #found(queue: "the same" | "another"): void {
    this.#lostWorkers.returned();
    this.#acks.found(queue);
    for (const key of this.#cancelled.splice(0)) this.#link.publish(this.#names.cancel, key);
    this.#publishes.repeatUnanswered();
    this.#outage.end();
  }

  #read({ data, subject }: NatsMessage): Reply | undefined {
    try {
      return replyOf(data);
    } catch (thrown) {
      this.#link.reportUnreadable(subject, thrown);
      return undefined;
    }
  }

  /** The caller has left: it need not run. */
  #cancel(call: Call, outcome: Outcome, reason: unknown): void {
    if (!this.#open.has(call.head.i)) return;
    this.#end(call, outcome, reason);
    const key = keyOf(call.head);
    this.#link.publish(this.#names.cancel, key);
    // A server that hangs may get the cancellation after the item, or not at all.
    if (call.sequence === undefined && call.publishes > 0 && this.#cancelled.push(key) > maxRepeated)
      this.#cancelled.shift();
    this.#delete(call.sequence);
    this.#delete(call.movedFrom?.sequence);
  }

  /** No server takes items for the queue. The call waits for it, and others that come do. */
  #missing(call: Call): void {
    this.#readiness.provisionSoon();
    this.#outage.missing();
    // Workers may have been connected to the server that is lost.
    this.#lostWorkers.cutOff();
    if (call.movedFrom !== undefined) return this.#refused(call, undefined);
    this.#publishes.forget(call);
    this.#outage.holdAgain(call);
  }

  /** Callers whose items nothing confirms are told when the readiness check is, and not only when the last repetition fails. */
  #fell(reason: string): void {
    if (!this.#publishes.isSilent) return;
    const error = unavailable(`${this.#name}: ${reason}.`);
    for (const call of this.#publishes.unanswered())
      if (call.movedFrom === undefined) this.#cancel(call, "rejected", error);
      else this.#refused(call, error);
  }

  /** It was held for too long. */
  #refusedHeld(call: Call, error: Error): void {
    if (call.sequence !== undefined) return;
    if (call.publishes === 0) this.#end(call, "rejected", error);
    else this.#cancel(call, "rejected", error);
  }

  /** The queue did not take it; one that was to be moved is still where it was, and goes with the next look. */
  #refused(call: Call, error: Error | undefined): void {
    if (call.movedFrom === undefined) return this.#end(call, "rejected", error);
    this.#publishes.forget(call);
    Object.assign(call, call.movedFrom, { movedFrom: undefined });
  }

  /** Worker after worker ends with it: no other should run it. */
  #giveUp({ sequence, deathsAlone }: Call): void {
    const reason = `${deathsAlone} workers ended while they ran this item alone`;
    // The queue knows how often it was given out; at least once more than it ran alone.
    void this.#deadLetters.takeOut(sequence!, deathsAlone + 1, reason).catch(() => undefined);
  }

  /** Takes it out of the queue, where it still waits there. */
  #delete(sequence: number | undefined): void {
    if (sequence === undefined) return;
    const subject = `$JS.API.STREAM.MSG.DELETE.${this.#names.stream}`;
    this.#link.publish(subject, JSON.stringify({ seq: sequence, no_erase: true }));
  }

  /** Items of a version that no longer has a worker go to the one that took over. */
  #move(): void {
    const { routing } = this;
    if (!this.isConnected || routing.workers.length === 0) return;
    for (const call of this.#open.values()) {
      const { route, sequence } = call;
      if (route === routing.route || sequence === undefined || routing.isStaffed(route)) continue;
      Object.assign(call, {
        movedFrom: { route, sequence },
        route: routing.route,
        sequence: undefined,
        publishes: 0,
        handedBack: 0,
      });
      this.#publishes.publish(call);
    }
  }

  #end(call: Call, outcome: Outcome, error: unknown): void {
    if (!this.#forget(call, outcome)) return;
    call.admitted?.(error as Error);
    call.reject(error);
    call.epoch.settled(1);
  }

  /** False where it has ended already. */
  #forget(call: Call, outcome: Outcome): boolean {
    if (!this.#open.delete(call.head.i)) return false;
    if (call.lane === "bulk") this.bulk--;
    this.#publishes.forget(call);
    call.release();
    if (outcome === "ok") call.admitted?.();
    this.batches.ended(call.lane, outcome);
    return true;
  }

  #disconnected(): void {
    this.#publishes.disconnected();
    this.#acks.suspend();
    this.#outage.begin();
    this.#readiness.suspectLoss();
    const error = unavailable(`${this.#name}: the connection to NATS went down.`);
    if (this.#settings.durability === "none") for (const call of this.#open.values()) this.#refused(call, error);
    // It is unknown whether these were taken. The queue takes a message only once.
    for (const call of this.#publishes.unanswered()) {
      if (call.movedFrom !== undefined) this.#refused(call, error);
      else {
        this.#publishes.forget(call);
        this.#outage.holdAgain(call);
      }
    }
  }

  /** It was held until now. Meanwhile another version may have taken over, or its caller may have gone. */
  #release(call: Call): void {
    if (!this.#open.has(call.head.i) || call.sequence !== undefined) return;
    // Another route would be another message, and perhaps a second one.
    if (call.publishes === 0) call.route = this.routing.route;
    this.#publishes.publish(call);
  }

  /** Its owner has closed the connection: nothing more comes. */
  #gone(): void {
    const error = unavailable(`${this.#name}: the NATS connection is closed.`);
    this.#failAll(error);
    this.#readiness.fail(error);
    this.#stop();
  }

  #failAll(error: unknown): void {
    for (const call of this.#open.values()) this.#cancel(call, "rejected", error);
  }

  #lost(call: Call): void {
    this.#end(call, "error", unavailable(`${this.#name}: the NATS server lost the queue and with it the item.`));
  }
}
/** The client gives an empty text where there is none. */
const isSubject = (reply: string | undefined): reply is string => reply !== undefined && reply !== "";
