import { jetStream, type ConsumerInfo } from "../queue/jetstream.ts";
import type { QueueNames } from "../queue/topology.ts";
import { lanes, type QueueSettings } from "../queue/options.ts";
import type { WorkerInfo } from "../queue/worker-registry.ts";
import type { QueueConnection } from "../wire/connection.ts";
import { keyOf } from "../wire/envelope.ts";
import { every } from "../wire/every.ts";
import type { Call } from "./call.ts";
import type { Routing } from "./routing.ts";

/** Silence after which a worker is asked whether it is alive. */
const silentMs = 600;
const lookEveryMs = 200;
/** A lost worker is answered for at once; on a busy machine that takes a while. */
const probeTimeoutMs = 1000;
/** After a cut of this side's own connection, the workers may need a while to be back. */
const graceMs = 3000;
const claimTimeoutMs = 1000;
const againMs = 500;
/** Workers that ended while they ran an item, and nothing else: it is the cause. */
const deathsAlone = 2;

/** Without `id` none is lost, and items of none are given to others. */
type LostWorker = Pick<WorkerInfo, "route"> & { readonly id: string | undefined };

export interface LostWorkersParts {
  readonly settings: QueueSettings;
  readonly names: QueueNames;
  readonly link: QueueConnection;
  readonly routing: Routing;
  /** The name of this side in keys. */
  readonly token: string;
  /** Calls that are not answered. */
  readonly open: () => Iterable<Call>;
  readonly giveUp: (call: Call) => void;
}

/** Workers are connected to the queue again soon after it is there. */
const settleMs = 200;

/**
 * Has the items of a worker that is gone given to others at once, and those that were on their way to a worker when NATS went. The NATS server tells it from one that merely hangs: the
 * subject of a worker whose connection is closed has no listener, and a request to it is answered so. A worker that hangs, or is on
 * a machine that vanished, keeps its items for the ack wait.
 */
export class LostWorkers {
  readonly stop: () => void;
  readonly #parts: LostWorkersParts;
  /** Silent workers without a listener, by the moment when that was seen first. */
  readonly #absentAtMs: Map<string, number> = new Map();
  readonly #probing: Set<string> = new Set();
  #notBeforeAtMs = -Infinity;
  #wasCutOff = false;

  constructor(parts: LostWorkersParts) {
    this.#parts = parts;
    this.stop = every(parts.settings.clock, lookEveryMs, () => this.#look());
  }

  /** This side was cut off from the queue, and so were the workers perhaps. */
  cutOff(): void {
    this.#notBeforeAtMs = this.#parts.settings.clock.now() + graceMs;
    this.#absentAtMs.clear();
    this.#wasCutOff = true;
  }

  /** The queue is there. Items that it gave out while it was away may be at no worker. */
  returned(): void {
    const { settings, routing } = this.#parts;
    if (!this.#wasCutOff || settings.durability === "none") return;
    this.#wasCutOff = false;
    const giveUpAtMs = settings.clock.now() + settings.ackWaitMs;
    settings.clock.after(settleMs, () => void this.#handOver({ id: undefined, route: routing.route }, giveUpAtMs));
  }

  #look(): void {
    const { settings, link, routing } = this.#parts;
    if (!link.isConnected || settings.clock.now() < this.#notBeforeAtMs) return;
    const silent = routing.silentFor(silentMs);
    for (const id of this.#absentAtMs.keys())
      if (!silent.some((worker) => worker.id === id)) this.#absentAtMs.delete(id);
    for (const worker of silent) if (!this.#probing.has(worker.id)) void this.#probe(worker);
  }

  async #probe(worker: WorkerInfo): Promise<void> {
    const { settings, names, link, routing } = this.#parts;
    this.#probing.add(worker.id);
    const isAbsent = (await this.#ask(worker, "", probeTimeoutMs)) === "absent";
    this.#probing.delete(worker.id);
    if (!isAbsent) return void this.#absentAtMs.delete(worker.id);
    const nowMs = settings.clock.now();
    if (nowMs < this.#notBeforeAtMs) return;
    const absentAtMs = this.#absentAtMs.get(worker.id);
    if (absentAtMs === undefined) return void this.#absentAtMs.set(worker.id, nowMs);
    this.#absentAtMs.delete(worker.id);
    routing.lost(worker.id);
    // Other workers must not count on it when they try the items. Other front ends see for themselves, and hand over theirs.
    link.publish(names.joined, JSON.stringify({ ...worker, slots: 0 }));
    this.#countDeath(worker.id);
    if (settings.durability !== "none") void this.#handOver(worker, nowMs + settings.ackWaitMs);
  }

  /** Also of items that the queue has given to others meanwhile: after a pause of the whole machine it does so at once. */
  #countDeath(id: string): void {
    for (const call of this.#parts.open()) {
      if (call.aloneAt?.delete(id) !== true) continue;
      call.deathsAlone++;
      if (call.deathsAlone >= deathsAlone) this.#parts.giveUp(call);
    }
  }

  async #handOver(worker: LostWorker, giveUpAtMs: number): Promise<void> {
    const { clock } = this.#parts.settings;
    const isDone = await this.#tryHandOver(worker).catch(() => false);
    // A worker hangs, or is not back: its items cannot be told from the others. Later the queue gives all of them out itself.
    if (!isDone && clock.now() < giveUpAtMs) clock.after(againMs, () => void this.#handOver(worker, giveUpAtMs));
  }

  /** Items that the queue gave out, and that no living worker holds, were at the lost one. False where that is unknown. */
  async #tryHandOver({ id, route }: LostWorker): Promise<boolean> {
    const { settings, names, link, routing, token } = this.#parts;
    const suspected = new Set(
      [...this.#parts.open()].filter((call) => call.route === route && call.sequence !== undefined),
    );
    if (suspected.size === 0) return true;
    const delivered = new Map(
      await Promise.all(
        lanes.map(async (lane) => {
          const info = await jetStream<ConsumerInfo>(
            settings,
            `CONSUMER.INFO.${names.stream}.${names.consumer(route, lane)}`,
          );
          return [lane, info.delivered] as const;
        }),
      ),
    );
    // Asked only now: a worker that got an item before has it, and one that answers has read all that it got.
    const others = routing.all().filter((worker) => worker.route === route && worker.id !== id);
    const claims = await Promise.all(others.map((worker) => this.#ask(worker, token, claimTimeoutMs)));
    if (claims.includes("silent") || (id === undefined && claims.includes("absent"))) return false;
    const held = new Set(claims.flatMap((claim) => (typeof claim === "string" ? [] : claim)));
    // They seem to be gone too. What ended them goes to no other worker before that is counted.
    const ending = others.filter((_, index) => claims[index] === "absent");
    const open = new Set(this.#parts.open());
    for (const call of suspected) {
      const { sequence, lane, head } = call;
      const { consumer_seq, stream_seq = 0 } = delivered.get(lane) ?? {};
      if (!open.has(call) || sequence === undefined || sequence > stream_seq || held.has(keyOf(head))) continue;
      if (call.deathsAlone >= deathsAlone || ending.some((worker) => call.aloneAt?.has(worker.id))) continue;
      call.handedBack = 0;
      // As its worker would have acknowledged it. The server looks at the item's number, and that the other one is in
      // use.
      const ack = `$JS.ACK.${names.stream}.${names.consumer(route, lane)}.1.${sequence}.${consumer_seq}.0.0`;
      link.publish(ack, "-NAK");
    }
    return true;
  }

  /** The keys of this side that a worker holds; or that it does not answer, or is not there. */
  async #ask(
    { id }: Pick<WorkerInfo, "id">,
    token: string,
    timeout: number,
  ): Promise<readonly string[] | "silent" | "absent"> {
    const { settings, names } = this.#parts;
    try {
      const { data } = await settings.connection.request(names.worker(id), token, { timeout });
      const keys = JSON.parse(new TextDecoder().decode(data)) as unknown;
      return Array.isArray(keys) ? (keys as string[]) : "silent";
    } catch (error) {
      const { name, cause } = error as { name?: string; cause?: { name?: string } };
      return (cause?.name ?? name)?.startsWith("NoResponders") === true ? "absent" : "silent";
    }
  }
}
