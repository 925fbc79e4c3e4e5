import { createServer, type Server, type Socket } from "node:net";
import { binaryCodec, encodedParts, type WireError } from "sheaf/internal/nats";
import type { MetricFamily } from "sheaf/internal/metrics";
import { within } from "sheaf/internal";
import type { BatcherError, Priority } from "sheaf";
import { CacheUse } from "../../cache/cache-use.ts";
import type { Served } from "../../cache/served.ts";
import type { InferOptions } from "../../http/call-options.ts";
import { clientClosedRequest, Problem } from "../../problems/problem.ts";
import { continuedTraces, type ContinueTrace } from "../../observe/tracing.ts";
import type { Callers } from "../../tenants/callers.ts";
import type { Models } from "../models/models.ts";
import type { FrontRow } from "../../dashboard/observed.ts";
import type { ServedModel } from "../models/served-model.ts";
import { inferEach, inferOne } from "../protocols/requests.ts";
import { wireErrorOf } from "./errors.ts";
import { cpuSecondsOf, sumOf, type ProcessFigures } from "../../observe/process-figures.ts";
import { unreachable } from "./hub-link.ts";
import { Messages, type Announced, type CallHead, type FrontFigures, type FrontHead, type Lane, type ReplyHead, type Times } from "./wire.ts"; // prettier-ignore

/** A front that sends nothing for this long hangs; its clients have gone, or will. */
const silenceMs = 10_000;
/** How long a scrape waits for the fronts' latest counts. */
const askMs = 500;
/** Least span of a share of a core. */
const coreShareMs = 900;

interface Front {
  readonly number: number;
  readonly messages: Messages;
  readonly socket: Socket;
  readonly connections: Map<number, AbortController>;
  follows: number;
  heardAtMs: number;
  figures: FrontFigures | undefined;
  /** When its CPU time was looked at, the time, and the share of a core since the look before. */
  lookAtMs: number;
  cpuS: number;
  coreShare: number;
  told: (() => void) | undefined;
}

interface Published {
  readonly id: number;
  readonly model: ServedModel;
  readonly continueTrace: ContinueTrace;
  /** Its lanes that fronts know to be full: of bulk calls, of others. */
  readonly full: Set<boolean>;
  /** Lets it close. */
  readonly release: () => void;
  /** The first list without it. */
  goneIn: number;
}

/** Runs the items of fronts: the other end of their `HubLink`s. */
export class Hub {
  readonly #models: Models;
  readonly #callers: Callers;
  readonly #server: Server;
  readonly #fronts: Set<Front> = new Set();
  readonly #published: Map<number, Published> = new Map();
  readonly #timer: NodeJS.Timeout;
  /** Counts of fronts that have ended. */
  #gone: readonly MetricFamily[] = [];
  #list = 0;
  #lastId = 0;
  #isClosing = false;
  #whenFollowed: (() => void)[] = [];

  constructor(models: Models, callers: Callers, path: string) {
    this.#models = models;
    this.#callers = callers;
    models.watch((deployment) => {
      const ends = [deployment.onServed(() => this.#publish()), deployment.onLoad(() => this.#publish())];
      return () => {
        for (const end of ends) end();
        this.#publish();
      };
    });
    this.#server = createServer((socket) => this.#accept(socket)).listen({ path, backlog: 4096 });
    this.#timer = setInterval(() => {
      for (const front of this.#fronts)
        if (performance.now() - front.heardAtMs > silenceMs) setImmediate(() => this.#dropIfSilent(front));
    }, 1000).unref();
  }

  /** Resolves when all fronts follow the present list of models, and there are at least `least`. */
  async followed(least: number = 0): Promise<void> {
    const isDone = (): boolean =>
      this.#fronts.size >= least && [...this.#fronts].every(({ follows }) => follows === this.#list);
    while (!isDone()) await new Promise<void>((resolve) => this.#whenFollowed.push(resolve));
  }

  /** Requests of all fronts, and each process's own figures; asks the fronts for the latest. */
  async figures(): Promise<{
    readonly requests: readonly MetricFamily[];
    readonly processes: readonly ProcessFigures[];
  }> {
    const fronts = [...this.#fronts];
    const told = fronts.map((front) => new Promise<void>((resolve) => (front.told = resolve)));
    for (const { messages } of fronts) messages.send({ ask: true });
    await within(Promise.all(told), askMs);
    const known = fronts.flatMap(({ number, figures }) => (figures === undefined ? [] : [{ number, figures }]));
    return {
      requests: sumOf([this.#gone, ...known.map(({ figures }) => figures.requests)]),
      processes: known.map(({ number, figures }) => ({ name: `front ${number}`, families: figures.process })),
    };
  }

  /** The share of a core that each front has used lately. */
  get coreShares(): readonly FrontRow[] {
    const rows = [...this.#fronts].map(({ number, coreShare }) => ({ name: `front ${number}`, coreShare }));
    return rows.sort((a, b) => a.name.localeCompare(b.name));
  }

  /** Lets models close: no front sends any more. */
  close(): void {
    this.#isClosing = true;
    clearInterval(this.#timer);
    this.#server.close();
    for (const { release } of this.#published.values()) release();
    for (const { socket } of this.#fronts) socket.destroySoon();
  }

  #accept(socket: Socket): void {
    let front: Front | undefined;
    const messages = new Messages(socket, (head, body) => {
      if (front === undefined) {
        const number = (head as FrontHead).hello ?? 0;
        const heardAtMs = performance.now();
        const figures = { figures: undefined, lookAtMs: heardAtMs, cpuS: 0, coreShare: 0, told: undefined };
        front = { number, messages, socket, connections: new Map(), follows: 0, heardAtMs, ...figures };
        this.#fronts.add(front);
        messages.send(this.#listOfModels());
        return;
      }
      front.heardAtMs = performance.now();
      if ("i" in head) void this.#run(front, head as CallHead, body);
      else this.#told(front, head);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      if (front === undefined) return;
      this.#fronts.delete(front);
      for (const controller of front.connections.values()) controller.abort(clientClosedRequest());
      if (front.figures !== undefined) this.#gone = sumOf([this.#gone, front.figures.requests]);
      front.told?.();
      this.#release();
    });
  }

  #told(front: Front, { closed, follows, ping, refused, draining, figures }: FrontHead): void {
    if (refused !== undefined) this.#count(refused);
    if (draining) this.#models.frontsDrain = true;
    if (ping) front.messages.send({ pong: true });
    if (figures !== undefined) {
      front.figures = figures;
      front.told?.();
      const { heardAtMs, lookAtMs } = front;
      if (heardAtMs - lookAtMs < coreShareMs) return;
      const cpuS = cpuSecondsOf(figures.process);
      front.coreShare = (1000 * (cpuS - front.cpuS)) / (heardAtMs - lookAtMs);
      Object.assign(front, { cpuS, lookAtMs: heardAtMs });
    }
    if (closed !== undefined) {
      front.connections.get(closed)?.abort(clientClosedRequest());
      front.connections.delete(closed);
    }
    if (follows !== undefined) {
      front.follows = follows;
      this.#release();
    }
  }

  async #run(front: Front, { i, m, l, d, p, c, t, k, u }: CallHead, body: Uint8Array): Promise<void> {
    const cacheUse = this.#models.settings.cacheMaxBytes > 0 ? new CacheUse() : undefined;
    const answer = (reply: Omit<ReplyHead, "i" | "h">, value?: readonly Uint8Array[]): void =>
      front.messages.send({ i, ...reply, h: cacheUse?.counts } satisfies ReplyHead, value);
    try {
      const published = this.#published.get(m);
      if (published === undefined) throw unreachable();
      const { model, continueTrace } = published;
      // A version that was replaced while the call came still runs it.
      if (published.goneIn === Infinity) this.#models.take(model.name, "model");
      const item = binaryCodec.decode(body);
      const options: InferOptions = {
        timeoutMs: d,
        priority: p as Priority | undefined,
        signal: this.#signalOf(front, c),
        tag: t,
        cacheUse,
        caller: u === undefined ? undefined : this.#callers.recall(k ?? null, u),
        // The front knows what the request said of it.
        truncate: true,
      };
      if (l === true) {
        const outcomes = await continueTrace(t, () => inferEach(model, item as readonly unknown[], options));
        const values = outcomes.map((one) => (one.status === "fulfilled" ? one.value.value : null));
        const ends = outcomes.map((one): Times | WireError =>
          one.status === "fulfilled" ? timesOf(one.value) : wireErrorOf(one.reason),
        );
        answer({ o: ends }, encodedParts(values));
      } else {
        const served = await continueTrace(t, () => inferOne(model, item, options));
        answer({ r: timesOf(served) }, encodedParts(served.value));
      }
    } catch (error) {
      answer({ e: wireErrorOf(error) });
      if (error instanceof Problem && error.code === "QUEUE_FULL") this.#tellFull(m, p === "bulk", error.cause as BatcherError); // prettier-ignore
    }
    this.#tellRoom(m);
  }

  /** Lets fronts refuse what has no room, before they have read it. With a cache they cannot know what needs none. */
  #tellFull(m: number, isBulk: boolean, { details }: BatcherError): void {
    const { model, full } = this.#published.get(m) ?? {};
    if (model === undefined || model.cache !== undefined || !isFull(model, isBulk)) return;
    full!.add(isBulk);
    const { queued, drainMs } = details as { readonly queued: number; readonly drainMs?: number };
    // Each front spreads the retries of its part of the clients.
    const refusal = { queued, drainMs, tenantQueued: queued / this.#fronts.size };
    for (const { messages } of this.#fronts) messages.send({ full: { m, isBulk, refusal } });
  }

  #tellRoom(m: number): void {
    const { model, full } = this.#published.get(m) ?? {};
    for (const isBulk of full ?? []) {
      if (isFull(model!, isBulk)) continue;
      full!.delete(isBulk);
      for (const { messages } of this.#fronts) messages.send({ full: { m, isBulk } });
    }
  }

  /** Counts requests that fronts have refused, as the batcher would have. */
  #count({ m, isBulk, count }: Lane & { readonly count: number }): void {
    const model = this.#published.get(m)?.model;
    for (let i = 0; i < count; i++) {
      model?.statistics.failed(0);
      try {
        model?.checkRoom(isBulk ? { priority: "bulk" } : undefined);
      } catch {
        // It has counted.
      }
    }
  }

  /** One for each connection of a client, which stands for it where tenants are not told apart. */
  #signalOf({ connections }: Front, number: number): AbortSignal {
    let controller = connections.get(number);
    if (controller === undefined) connections.set(number, (controller = new AbortController()));
    return controller.signal;
  }

  #dropIfSilent(front: Front): void {
    if (performance.now() - front.heardAtMs > silenceMs) front.socket.destroy();
  }

  /** Tells the fronts which models there are. A model stays open until no front can send it items. */
  #publish(): void {
    if (this.#isClosing) return;
    this.#list++;
    const current = new Set(this.#models.all);
    for (const published of this.#published.values())
      if (!current.delete(published.model)) published.goneIn = Math.min(published.goneIn, this.#list);
    for (const model of current) {
      const id = ++this.#lastId;
      const continueTrace = continuedTraces(model.name, "socket");
      const full = new Set<boolean>();
      const endHold = model.hold();
      // Once the next batch has left the queue.
      const end = model.subscribe(() => full.size > 0 && setImmediate(() => this.#tellRoom(id)));
      const release = (): void => (end(), endHold());
      this.#published.set(id, { id, model, continueTrace, full, release, goneIn: Infinity });
    }
    for (const { messages } of this.#fronts) messages.send(this.#listOfModels());
    this.#release();
  }

  #release(): void {
    for (const wake of this.#whenFollowed.splice(0)) wake();
    const followed = Math.min(Infinity, ...[...this.#fronts].map(({ follows }) => follows));
    for (const { id, goneIn, release } of this.#published.values()) {
      if (goneIn > followed || goneIn === Infinity) continue;
      release();
      this.#published.delete(id);
    }
  }

  #listOfModels(): object {
    const ids = new Map([...this.#published.values()].map(({ id, model }) => [model, id]));
    const models = this.#models.deployments.map(({ name, current, state, reason }): Announced => {
      if (current === undefined) return { name, failure: state === "failed" ? reason : undefined };
      // JSON leaves out its functions.
      const { run: _run, jsonDemand: _jsonDemand, warmUpItem: _warmUpItem, ...definition } = current.definition;
      return { name, id: ids.get(current), definition };
    });
    return { list: this.#list, named: this.#models.named, models };
  }
}

const isFull = ({ batcher: { pending }, settings }: ServedModel, isBulk: boolean): boolean =>
  (isBulk ? pending.bulk : pending.queued - pending.bulk) >= settings.queueMaxSize;

const timesOf = ({ queueMs, runMs, batchSize }: Served): Times => [queueMs, runMs, batchSize];
