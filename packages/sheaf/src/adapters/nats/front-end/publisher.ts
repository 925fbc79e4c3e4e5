import type { Priority } from "../../../core/contract/options.ts";
import type { Fault } from "./availability.ts";
import type { Call } from "./call.ts";
import type { NatsMessage } from "../wire/client.ts";
import { ackSubject, keyOf } from "../wire/envelope.ts";
import { pack, recordOf } from "../../../shared/packed.ts";
import { unavailable } from "../wire/errors.ts";
import type { QueueConnection } from "../wire/connection.ts";
import type { QueueLoad } from "./queue-load.ts";
import type { QueueSettings } from "../queue/options.ts";
import { isLeaderless, type ApiError } from "../queue/jetstream.ts";
import { namesOf, type QueueNames } from "../queue/topology.ts";

/** A publish without an answer is repeated after this; the queue takes the same message only once. */
const ackTimeoutMs = 2000;
const maxPublishes = 3;
/** More unconfirmed publishes than this mean that the queue cannot keep up. */
const maxUnanswered = 10_000;
/** JetStream's error code of a stream that stores no more: it is full, per lane or in bytes, or so is the disk. */
const queueFull = 10077;
/** A publish that has no answer for this long is a sign. */
const silentMs = 500;
/** JetStream's error code of a repeated item whose first copy is still being stored. */
const inProcess = 10158;

export interface PublisherEvents {
  /** The queue has it; a call that is undefined has ended, or was a probe. */
  accepted(call: Call | undefined, sequence: number | undefined): void;
  /** The queue does not have it. */
  refused(call: Call, error: Error): void;
  /** It is unknown whether the queue has it. */
  unanswered(call: Call, error: Error): void;
  /** No server takes items for the queue: it does not exist, or nothing leads it. */
  missing(call: Call): void;
}

/** Publishes items to the queue, and learns whether they are in it. */
export class Publisher {
  /** Publishes that were repeated. */
  repeated = 0;
  readonly #settings: QueueSettings;
  readonly #names: QueueNames;
  readonly #link: QueueConnection;
  readonly #inbox: string;
  /** Names the front end in errors. */
  readonly #name: string;
  readonly #load: QueueLoad;
  readonly #holdMs: number;
  readonly #events: PublisherEvents;
  /** Oldest publish first. */
  readonly #unanswered: Map<string, Call> = new Map();
  /** The numbers of those of bulk. */
  readonly #unansweredBulk: Set<string> = new Set();
  #cancelSweep: (() => void) | undefined;
  /** Why the last item was refused; undefined once one is taken. */
  #refusal: string | undefined;
  /** Size of the last item that was refused: on a full disk a smaller one may fit. */
  #refusedBytes = 0;
  /** Of the first publish since the server's last answer. */
  #askedAtMs: number | undefined;
  #probes = 0;
  /** Calls that go at the end of the turn. */
  #leaving: Call[] = [];

  constructor(
    settings: QueueSettings,
    link: QueueConnection,
    own: { inbox: string; name: string; load: QueueLoad; holdMs: number },
    events: PublisherEvents,
  ) {
    this.#settings = settings;
    this.#names = namesOf(settings);
    this.#link = link;
    this.#inbox = own.inbox;
    this.#name = own.name;
    this.#load = own.load;
    this.#holdMs = own.holdMs;
    this.#events = events;
  }

  /** Why the queue takes no items, where it takes none. */
  get fault(): Fault | undefined {
    if (this.#refusal !== undefined) return { reason: this.#refusal, needsProbe: true };
    if (!this.isSilent) return undefined;
    return { reason: this.#whySilent(), isHeld: true, needsProbe: true };
  }

  /** Items that were published a while ago are not confirmed. */
  get isSilent(): boolean {
    return this.#askedAtMs !== undefined && this.#settings.clock.now() - this.#askedAtMs > silentMs;
  }

  /** In a cluster others may answer for the server that leads the queue. */
  #whySilent(): string {
    if (this.#settings.replicas > 1)
      return "JetStream confirms no items: the server that leads the queue hangs, or a disk is full";
    return this.#load.hasCountedSince(this.#askedAtMs!) ? diskIsFull : "JetStream does not answer";
  }

  /** @throws {BatcherError} `QUEUE_FULL` while NATS does not keep up with the items of live calls, or with those of bulk. */
  checkRoom(lane: Priority): void {
    const bulk = this.#unansweredBulk.size;
    if ((lane === "bulk" ? bulk : this.#unanswered.size - bulk) >= maxUnanswered)
      throw this.#load.full(`${maxUnanswered} published items are not yet acknowledged by NATS.`);
  }

  /** Calls of which it is unknown whether the queue has them. */
  unanswered(): Call[] {
    return [...this.#unanswered.values()];
  }

  /** At the end of the turn: items of one turn go in one write to the socket, which costs more than all the rest. */
  publish(call: Call): void {
    call.publishes++;
    call.publishedAtMs = this.#settings.clock.now();
    this.#unanswered.delete(call.head.i);
    this.#unanswered.set(call.head.i, call);
    if (call.lane === "bulk") this.#unansweredBulk.add(call.head.i);
    if (this.#leaving.push(call) === 1) this.#settings.clock.after(0, () => this.#sendAll());
  }

  #sendAll(): void {
    const leaving = this.#leaving;
    this.#leaving = [];
    for (const call of leaving) {
      // It has ended meanwhile.
      if (!this.#unanswered.has(call.head.i)) continue;
      try {
        this.#send(call);
      } catch (error) {
        this.#events.refused(call, error as Error);
      }
    }
  }

  #send(call: Call): void {
    const { head, payload, lane, route } = call;
    const subject = this.#names.lane(route, lane);
    const reply = ackSubject(this.#inbox, head.i);
    if (this.#settings.durability === "none") {
      this.#link.publish(subject, payload, { reply });
      // Core NATS does not confirm a message that is taken.
      this.forget(call);
      this.#events.accepted(call, undefined);
      return;
    }
    const headers = this.#settings.headers();
    // The same item for another version is another message.
    headers.set("Nats-Msg-Id", `${keyOf(head)}.${route}`);
    if (this.#link.publish(subject, payload, { reply, headers })) this.#askedAtMs ??= this.#settings.clock.now();
    this.#sweepSoon();
  }

  /** Publishes an item whose time is over, which no worker runs: whether the queue takes it is all that counts. */
  probe(route: string): void {
    const head = { f: this.#inbox, i: probeId, d: 0 };
    const headers = this.#settings.headers();
    // Those that a server that hangs finds later are one.
    headers.set("Nats-Msg-Id", `${keyOf(head)}.${this.#probes}`);
    const reply = ackSubject(this.#inbox, probeId);
    const { byteLength } = pack(head, new Uint8Array());
    const payload = pack(head, new Uint8Array(Math.max(0, this.#refusedBytes - byteLength)));
    this.#link.publish(this.#names.lane(route, "interactive"), payload, { reply, headers });
  }

  /** The server's answer to a publish; undefined for `call` where it was a probe, or has ended. */
  acknowledged(call: Call | undefined, message: NatsMessage): void {
    this.#askedAtMs = undefined;
    const { headers, data } = message;
    if (headers?.code === 503) {
      if (call === undefined) return;
      if (this.#settings.durability !== "none") return this.#events.missing(call);
      return this.#events.refused(call, unavailable(`${this.#name}: no worker listens.`));
    }
    const { error, seq } = recordOf(data) as PublishAck;
    if (error === undefined) {
      this.#refusal = undefined;
      this.#refusedBytes = 0;
      if (call === undefined) this.#probes++;
      else this.forget(call);
      return this.#events.accepted(call, seq);
    }
    const { err_code, description } = error;
    if (isLeaderless(error)) return call && this.#events.missing(call);
    // The next repetition tells whether it has been stored.
    if (err_code === inProcess) return;
    const refusal = this.#refusalOf(error);
    // One that is full takes items as soon as others have left.
    if (!isFull(error)) this.#refusal = `JetStream refuses items (${description})`;
    if (call === undefined) return;
    this.#refusedBytes = call.payload.byteLength;
    this.#events.refused(call, refusal);
  }

  #refusalOf(error: ApiError): Error {
    const { description } = error;
    if (!isFull(error)) return unavailable(`${this.#name}: JetStream refused the item: ${description}.`);
    const { maxQueueSize, maxQueueBytes } = this.#settings;
    return /per subject/.test(description)
      ? this.#load.full(`the lane is full (${maxQueueSize} items): ${description}.`, { maxQueueSize })
      : this.#load.full(`the queue is full (${maxQueueBytes} bytes): ${description}.`, { maxQueueBytes });
  }

  /** The connection is down: nothing is confirmed on it any more. */
  disconnected(): void {
    this.#askedAtMs = this.#refusal = undefined;
  }

  /** The queue is there again: whether it took them before, it knows. */
  repeatUnanswered(): void {
    for (const call of this.unanswered()) {
      this.repeated++;
      this.publish(call);
    }
  }

  /** It has ended, is in the queue, or is not to be repeated. */
  forget({ head }: Call): void {
    this.#unanswered.delete(head.i);
    this.#unansweredBulk.delete(head.i);
  }

  stop(): void {
    this.#cancelSweep?.();
  }

  #sweepSoon(): void {
    this.#cancelSweep ??= this.#settings.clock.after(ackTimeoutMs / 4, () => this.#sweep());
  }

  /** Repeats unanswered publishes, or abandons them. */
  #sweep(): void {
    this.#cancelSweep = undefined;
    const cutoffAtMs = this.#settings.clock.now() - ackTimeoutMs;
    for (const call of this.unanswered()) {
      if (call.publishedAtMs > cutoffAtMs) break;
      if (call.publishes >= maxPublishes && call.arrivedAtMs < this.#settings.clock.now() - this.#holdMs) {
        this.#events.unanswered(call, unavailable(`${this.#name}: JetStream did not confirm the item.`));
      } else {
        this.repeated++;
        this.publish(call);
      }
    }
    if (this.#unanswered.size > 0) this.#sweepSoon();
  }
}

/** Calls are numbered without leading zeros. */
const probeId = "0probe";

const diskIsFull =
  "JetStream confirms no items; nats-server 2.15 does so once its disk is full, until it is restarted with room on the disk";

/** By its own limits, of items or bytes, and not by a fault such as that of a full disk. */
const isFull = ({ err_code, description }: ApiError): boolean =>
  err_code === queueFull && /^maximum (messages|bytes)/.test(description);

interface PublishAck {
  readonly seq?: number;
  readonly error?: ApiError;
}
