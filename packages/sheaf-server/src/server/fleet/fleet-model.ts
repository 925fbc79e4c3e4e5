import { BatcherError, type BatchRecord, type BatcherStats, type CallOptions } from "sheaf";
import {
  natsFrontEnd,
  type LaneFigures,
  type NatsClient,
  type NatsFrontEnd,
  type WorkerInfo,
} from "sheaf/adapters/nats";
import type { WorkerExecutor } from "sheaf/node";
import { emptyStats } from "../../shared/empty-stats.ts";
import { inputParser } from "../codec/inputs.ts";
import { Holds } from "../models/holds.ts";
import type { LocalModel } from "../models/local-model.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import { ModelStatistics } from "../contract/model-statistics.ts";
import { Problem } from "../../problems/problem.ts";
import type { Served } from "../../cache/served.ts";
import type { InferOptions } from "../../http/call-options.ts";
import {
  refuseLate,
  type CrashedInputCounts,
  type ModelState,
  type ServedModel,
  type InputParser,
} from "../contract/served-model.ts";
import type { Settings } from "../../settings/settings.ts";
import { queueTracing, type QueueTracing } from "../../observe/tracing.ts";
import type { FleetConnection } from "./connection.ts";
import type { FleetLog } from "./fleet-log.ts";
import { descriptionOf, queueOf } from "./queue.ts";

const figuresEveryMs = 1000;

/** What a model of a fleet shares with the others. */
export interface FleetParts {
  readonly connection: FleetConnection;
  readonly log: FleetLog;
  /** In role all, the worker beside it. */
  readonly local?: LocalModel | undefined;
}

/** A model whose batches run on the workers of a fleet: its items go through a queue that all gateways share. */
export class FleetModel implements ServedModel {
  readonly name: string;
  readonly definition: ModelDefinition;
  readonly settings: Settings;
  readonly maxBatchSize: number;
  readonly parse: InputParser;
  readonly statistics: ModelStatistics = new ModelStatistics();
  readonly cache: undefined;
  cutOff = 0;
  /** The lanes as the NATS server counted them a second ago at most. */
  figures: readonly LaneFigures[] = [];
  readonly #connection: FleetConnection;
  readonly #log: FleetLog;
  /** In role all, the worker beside it. */
  readonly local: LocalModel | undefined;
  readonly #ready: Promise<void>;
  readonly #subscribers: Set<(record: BatchRecord) => void> = new Set();
  readonly #tracing: QueueTracing;
  #frontEnd: NatsFrontEnd<unknown, unknown> | undefined;
  #figuresAtMs = 0;
  #isReady = false;
  #isClosed = false;
  #failure: unknown;
  #timer: NodeJS.Timeout | undefined;
  #refused = 0;
  readonly #holds = new Holds();

  constructor(definition: ModelDefinition, settings: Settings, { connection, log, local }: FleetParts) {
    this.name = definition.name;
    this.definition = definition;
    this.settings = settings;
    this.maxBatchSize = Math.min(settings.maxBatchSize, definition.maxBatchSize ?? Infinity);
    this.parse = inputParser(definition.input, settings.maxTextChars);
    this.#connection = connection;
    this.#log = log;
    this.local = local;
    this.#tracing = queueTracing(definition.name);
    this.#ready = this.#start();
    this.#ready.then(
      () => (this.#isReady = true),
      (error: unknown) => (this.#failure = error),
    );
  }

  get state(): ModelState {
    if (this.#isClosed) return "closed";
    if (this.#failure !== undefined) return "failed";
    if (!this.#isReady) return "loading";
    return this.#unavailableReason() === undefined ? "ready" : "unavailable";
  }

  get failure(): unknown {
    if (this.#failure !== undefined) return this.#failure;
    const unavailableReason = this.#isClosed ? undefined : this.#unavailableReason();
    return unavailableReason === undefined ? undefined : new Error(unavailableReason);
  }

  get crashedInputs(): CrashedInputCounts | undefined {
    return this.local?.crashedInputs;
  }

  get workers(): WorkerExecutor<never, unknown> | undefined {
    return this.local?.workers;
  }

  /** Workers anywhere that serve this model now, all of one version. */
  get fleet(): readonly WorkerInfo[] {
    return this.#frontEnd?.workers() ?? [];
  }

  /** Workers of this name that serve another version or another model. */
  get otherWorkers(): readonly WorkerInfo[] {
    return this.#frontEnd?.otherWorkers() ?? [];
  }

  get isConnected(): boolean {
    return this.#frontEnd?.isConnected === true;
  }

  get counts(): NatsFrontEnd<unknown, unknown>["counts"] | undefined {
    return this.#frontEnd?.counts;
  }

  ready(): Promise<void> {
    return this.#ready;
  }

  stats(): BatcherStats {
    const stats = this.#frontEnd?.stats() ?? emptyStats(this.name);
    return { ...stats, items: { ...stats.items, rejected: stats.items.rejected + this.#refused } };
  }

  subscribe(listener: (record: BatchRecord) => void): () => void {
    this.#subscribers.add(listener);
    return () => void this.#subscribers.delete(listener);
  }

  async infer(item: unknown, options: InferOptions): Promise<Served> {
    const frontEnd = this.#open();
    this.#admit(1, options);
    try {
      return await frontEnd.detailed(item, this.#traced(options));
    } catch (error) {
      throw this.#problemOf(error);
    }
  }

  async inferAll(items: readonly unknown[], options: InferOptions): Promise<PromiseSettledResult<Served>[]> {
    const frontEnd = this.#open();
    this.#admit(items.length, options);
    const outcomes = await frontEnd.settleDetailed(items, this.#traced(options)).catch((error: unknown) => {
      throw this.#problemOf(error);
    });
    return outcomes.map((outcome) =>
      outcome.status === "fulfilled" ? outcome : { status: "rejected", reason: this.#problemOf(outcome.reason) },
    );
  }

  hold(): () => void {
    return this.#holds.hold();
  }

  async close(graceMs: number): Promise<void> {
    const startedAtMs = performance.now();
    const left = (): number => Math.max(0, graceMs - (performance.now() - startedAtMs));
    await this.#holds.released(graceMs);
    clearInterval(this.#timer);
    await this.#frontEnd?.close({ graceMs: left() });
    await this.local?.close(left());
    this.#isClosed = true;
  }

  async #start(): Promise<void> {
    const client: NatsClient = await this.#connection.client;
    const { name, maxBatchSize, settings } = this;
    const frontEnd = natsFrontEnd<unknown, unknown>({
      ...queueOf(name, settings, { client, log: this.#log }),
      serves: descriptionOf(this.definition),
      timeoutMs: settings.requestTimeoutMs,
      holdMs: settings.natsHoldMs,
      maxBatchSize,
      name,
    });
    this.#frontEnd = frontEnd;
    frontEnd.subscribe((record) => {
      this.statistics.batch(record);
      for (const subscriber of this.#subscribers) subscriber(record);
    });
    this.#timer = setInterval(() => void this.#count(frontEnd), figuresEveryMs).unref();
    await frontEnd.ready();
  }

  async #count(frontEnd: NatsFrontEnd<unknown, unknown>): Promise<void> {
    if (!frontEnd.isConnected) return;
    // A server that does not answer shows in isConnected, or in the age of these.
    this.figures = await frontEnd.figures().catch(() => this.figures);
    this.#figuresAtMs = performance.now();
  }

  #unavailableReason(): string | undefined {
    if (this.#frontEnd === undefined) return `not connected to NATS: ${this.#connection.unavailableReason}`;
    if (!this.#frontEnd.isTaking) return "the connection to NATS is down";
    if (this.#isReady && this.fleet.length > 0) return undefined;
    const { unavailableReason } = this.#frontEnd;
    if (unavailableReason !== undefined) return `the queue cannot be used: ${unavailableReason}`;
    if (this.fleet.length > 0) return "the queue is not there yet";
    return this.otherWorkers.length > 0
      ? "the workers of this name serve another model; start gateways and workers with the same model"
      : "no worker is alive";
  }

  #traced(options: InferOptions): InferOptions {
    return { ...options, traceparent: this.#tracing.passOn(options.traceparent) };
  }

  #open(): NatsFrontEnd<unknown, unknown> {
    if (this.#frontEnd !== undefined) return this.#frontEnd;
    throw new Problem("NOT_READY", `${this.name}: ${this.#unavailableReason()}.`, { headers: { "retry-after": "1" } });
  }

  /**
   * Refuses what could not be answered in time, as on one machine: from what waited a moment ago, less what has left
   * since. That there is room at all is the queue's own word.
   */
  #admit(items: number, { timeoutMs, priority }: CallOptions): void {
    const lane = priority === "immediate" ? 1 : priority === "bulk" ? 3 : 2;
    const before = this.figures.slice(0, lane).reduce((sum, { pending }) => sum + pending, 0);
    if (timeoutMs === undefined || before === 0) return;
    const drainMs = this.#frontEnd?.drainMs(before + items);
    if (drainMs === undefined) return;
    const expectedMs = drainMs - (performance.now() - this.#figuresAtMs);
    if (expectedMs <= refuseLate * timeoutMs) return;
    this.#refused += items;
    throw this.#refusal(`${this.name}: no result is possible in time.`, { expectedMs, timeoutMs });
  }

  #refusal(message: string, details: Readonly<Record<string, unknown>>): BatcherError {
    const sum = (of: "pending" | "ackPending"): number => this.figures.reduce((all, figures) => all + figures[of], 0);
    const [queued, atWorkers] = [sum("pending"), sum("ackPending")];
    const drainMs = this.#frontEnd?.drainMs(Math.max(queued, this.maxBatchSize));
    return new BatcherError("QUEUE_FULL", message, { ...details, queued, atWorkers, drainMs });
  }

  #problemOf(error: unknown): unknown {
    if (!(error instanceof BatcherError)) return error;
    if (error.code === "CLOSED") this.cutOff++;
    if (error.code === "QUEUE_FULL") return this.#refusal(error.message, error.details);
    // NATS' limit of a message, not the model's.
    if (error.code === "ITEM_TOO_LARGE" && "bytes" in error.details)
      return new Problem("BODY_TOO_LARGE", error.message, { cause: error });
    return error;
  }
}
