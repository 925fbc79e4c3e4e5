import {
  BatcherError,
  type Batcher,
  type BatchRecord,
  type BatcherStats,
  type CallOptions,
  type DetailedResult,
  type Executor,
} from "sheaf";
import { checkRoom } from "sheaf/internal";
import type { WorkerExecutor } from "sheaf/node";
import type { ModelCache } from "../../cache/model-cache.ts";
import type { RecordFile } from "../../observe/record-file.ts";
import type { Served } from "../../cache/served.ts";
import { forBatcher, type InferOptions } from "../../http/call-options.ts";
import { withoutStack } from "../../problems/without-stack.ts";
import { defaultBatchSize, type Settings } from "../../settings/settings.ts";
import { Accounts, senderOf } from "../../tenants/accounts.ts";
import { checkResult } from "../codec/result-faults.ts";
import { inputParser, type InputParser } from "../codec/inputs.ts";
import type { FleetPart } from "../contract/fleet-part.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import { ModelStatistics } from "../contract/model-statistics.ts";
import { FoundInputs } from "./found-inputs.ts";
import { Holds } from "./holds.ts";
import { localBatcher } from "./local-batcher.ts";
import { Tenanted } from "./tenanted.ts";
import { TurnEnd } from "./turn-end.ts";

/**
 * `restarting`: no worker is alive, but one is starting and items wait for it. `unavailable`: its workers crashed too often and
 * pause, its workers or runs hang, or the fleet's queue cannot be used.
 */
export type ModelState = "loading" | "ready" | "restarting" | "unavailable" | "failed" | "closed";

/** The part of a batcher that a served model needs. */
export type ModelBatcher = Pick<
  Batcher<unknown, unknown>,
  "name" | "detailed" | "settleDetailed" | "pending" | "capacity" | "close" | "ready" | "stats" | "subscribe"
>;

interface ServedParts {
  /**
   * Where its calls are recorded.
   * @default nowhere
   */
  readonly record?: RecordFile | undefined;
  /** @default none */
  readonly cache?: ModelCache | undefined;
  /**
   * The batcher of a fleet, whose workers run the batches, or of another process of this server.
   * @default a batcher of its own, over the definition's executor
   */
  readonly batcher?: ModelBatcher | undefined;
  /**
   * Whether `batcher` takes items with their tenants.
   * @default false
   */
  readonly isTenanted?: boolean | undefined;
  /**
   * Whether `batcher` takes lists of any length.
   * @default false: of at most QUEUE_MAX_SIZE
   */
  readonly takesAnyList?: boolean | undefined;
  /**
   * Converts a request's options for `batcher`.
   * @default the request's own
   */
  readonly callOf?: ((options: InferOptions) => CallOptions) | undefined;
  /**
   * The model in this process that takes items from the fleet's queue, beside the other workers.
   * @default none
   */
  readonly local?: ServedModel | undefined;
}

/** A model behind a batcher: its own, or a fleet's. */
export class ServedModel {
  readonly name: string;
  readonly definition: ModelDefinition;
  readonly settings: Settings;
  readonly batcher: ModelBatcher;
  readonly maxBatchSize: number;
  readonly parse: InputParser;
  readonly statistics: ModelStatistics = new ModelStatistics();
  readonly cache: ModelCache | undefined;
  readonly local: ServedModel | undefined;
  readonly takesAnyList: boolean;
  /** Items that a shutdown cut off before their result. */
  cutOff = 0;
  readonly #foundInputs: FoundInputs | undefined;
  readonly #accounts: Accounts = new Accounts();
  /** For items of senders whose items break runs; opened when first needed, if such items can run without disturbing others. */
  #apart: ModelBatcher | undefined;
  readonly #workers: WorkerExecutor<never, unknown> | undefined;
  readonly #isTenanted: boolean;
  readonly #callOf: (options: InferOptions) => CallOptions;
  #fleet: FleetPart | undefined;
  #failure: unknown;
  #phase: "loading" | "ready" | "failed" | "closed" = "loading";
  #isReady = false;
  readonly #record: RecordFile | undefined;
  readonly #endsOfRecord: (() => void)[] = [];
  readonly #turnEnd = new TurnEnd();
  readonly #holds = new Holds();

  constructor(definition: ModelDefinition, settings: Settings, parts: ServedParts = {}) {
    const { cache, batcher, local, record } = parts;
    const { name, run } = definition;
    this.name = name;
    this.definition = definition;
    this.settings = settings;
    this.cache = cache;
    this.#record = record;
    this.local = local;
    this.takesAnyList = parts.takesAnyList === true;
    this.parse = inputParser(definition.input, settings.maxTextChars);
    this.maxBatchSize = batchSizeOf(definition, settings);
    if (batcher === undefined) {
      this.#foundInputs = new FoundInputs(name, cache?.keyOf);
      this.#workers = "instances" in run ? (run as WorkerExecutor<never, unknown>) : undefined;
    }
    this.#isTenanted = batcher === undefined || parts.isTenanted === true;
    this.#callOf = parts.callOf ?? forBatcher;
    this.batcher = batcher ?? this.#openBatcher(false);
    if (batcher !== undefined) this.#observe(batcher);
    this.#workers?.onInstance(() => (this.#isReady = false));
    this.batcher.ready().then(
      () => this.#became("ready"),
      (error: unknown) => this.#failed(error),
    );
  }

  /** Joins a fleet; the model is then ready once its part in the fleet is. */
  join(fleet: FleetPart): void {
    this.#fleet = fleet;
    fleet.ready.catch((error: unknown) => this.#failed(error));
  }

  get fleet(): FleetPart | undefined {
    return this.#fleet;
  }

  /** Resolves when it can run; rejects with the reason if it never will. */
  ready(): Promise<void> {
    return this.#fleet?.ready ?? this.batcher.ready();
  }

  /** Resolves when its own workers are ready; at once where it has none here. */
  async loaded(): Promise<void> {
    if (this.#fleet?.frontEnd === undefined) await this.batcher.ready();
    await this.local?.batcher.ready();
  }

  get state(): ModelState {
    const { ownState } = this;
    return ownState === "ready" && this.#fleet?.unavailableReason !== undefined ? "unavailable" : ownState;
  }

  /** Why it cannot run; undefined if it can. */
  get failure(): unknown {
    if (this.#failure !== undefined) return this.#failure;
    const outage = this.#phase === "ready" ? this.#workers?.outage : undefined;
    if (outage !== undefined) return outage.error;
    if (this.#isHung)
      return new Error(
        "runs that were given up after RUN_TIMEOUT_MS take every slot and do not end. Restart the server.",
      );
    const unavailableReason = this.#phase === "closed" ? undefined : this.#fleet?.unavailableReason;
    return unavailableReason === undefined ? undefined : new Error(unavailableReason);
  }

  /** Whether it can run, wherever its items come from. */
  get ownState(): ModelState {
    if (this.#phase !== "ready") return this.#phase;
    // Asked for every request. While it is ready, the answer can change only with an instance.
    if (this.#isReady) return "ready";
    const state = this.#isHung ? "unavailable" : stateOf(this.#workers);
    this.#isReady = state === "ready";
    return state;
  }

  /** Whether runs that never end hold every slot of a model that runs in this process. */
  get #isHung(): boolean {
    if (this.#workers !== undefined || this.#isReady) return false;
    const { hungRuns, inFlight, concurrency } = this.batcher.stats();
    return hungRuns > 0 && inFlight === 0 && hungRuns >= (concurrency?.now ?? 1);
  }

  /** Its worker threads or processes; undefined if it runs in this process or on other machines. */
  get workers(): WorkerExecutor<never, unknown> | undefined {
    return this.#workers ?? this.local?.workers;
  }

  /** Inputs that broke runs here; undefined if it runs on other machines. */
  get foundInputs(): FoundInputs | undefined {
    return this.#foundInputs ?? this.local?.foundInputs;
  }

  stats(): BatcherStats {
    return this.batcher.stats();
  }

  subscribe(listener: (record: BatchRecord) => void): () => void {
    return this.batcher.subscribe(listener);
  }

  /** One item. @throws {BatcherError} as the batcher does, or the error of the model. */
  infer(item: unknown, options: InferOptions): Promise<Served> {
    const { cache } = this;
    return cache === undefined ? this.#run(item, options) : cache.infer(item, options, () => this.#run(item, options));
  }

  /**
   * Runs several items; outcomes in order. Items that find no room enter a local queue as room appears.
   * @throws {BatcherError} `QUEUE_FULL` if all are refused: locally if there is room for none, in a fleet if there is not room for
   * all.
   */
  inferAll(items: readonly unknown[], options: InferOptions): Promise<PromiseSettledResult<Served>[]> {
    const { cache } = this;
    if (cache === undefined) return this.#runAll(items, options);
    return cache.inferAll(items, options, (missing) => this.#runAll(missing, options));
  }

  /**
   * Refuses a request before its body is read, if it would be refused whatever the body holds.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  checkRoom(options: Pick<InferOptions, "priority" | "timeoutMs"> | undefined): void {
    // A cached result needs no room.
    if (this.cache === undefined) withoutStack(() => checkRoom(this.batcher, options));
  }

  /** Keeps the model open for a request that enters item by item, until the returned function is called. */
  hold(): () => void {
    return this.#holds.hold();
  }

  /** Finishes accepted items; those left after `graceMs` get `CLOSED`. */
  async close(graceMs: number): Promise<void> {
    const startedAtMs = performance.now();
    const left = (): number => Math.max(0, graceMs - (performance.now() - startedAtMs));
    try {
      await this.#holds.released(graceMs);
      await this.#fleet?.worker?.drain({ graceMs: left() });
      // First, because the workers belong to the main batcher.
      await this.#apart?.close({ graceMs: left() });
      await this.batcher.close({ graceMs: left() });
      await this.local?.close(left());
    } finally {
      this.#phase = "closed";
      for (const end of this.#endsOfRecord) end();
      this.cache?.close();
    }
  }

  async #run(item: unknown, options: InferOptions): Promise<Served> {
    const served = await this.runItem(item, options);
    if (this.#hasMore) await this.#turnEnd.reached();
    checkResult(served.value, this.definition.output);
    return served;
  }

  /** Runs one item without checking its result: a fleet worker leaves that to the gateway. */
  async runItem(item: unknown, options: InferOptions): Promise<DetailedResult<unknown>> {
    const refusal = this.#foundInputs?.refusal(item);
    if (refusal !== undefined) throw refusal;
    const { batcher, call, ended } = this.#wayOf(options);
    try {
      const served = await withoutStack(() => batcher.detailed(this.#waiting(item, options), call));
      ended();
      return served;
    } catch (error) {
      ended(error);
      throw error;
    }
  }

  async #runAll(items: readonly unknown[], options: InferOptions): Promise<PromiseSettledResult<Served>[]> {
    if (this.#foundInputs?.isEmpty === false) {
      const refusals = items.map((item) => this.#foundInputs!.refusal(item));
      if (refusals.some((refusal) => refusal !== undefined)) return this.#runOthers(items, refusals, options);
    }
    const waiting = this.#isTenanted ? items.map((item) => this.#waiting(item, options)) : items;
    const { batcher, call, ended } = this.#wayOf(options);
    const outcomes = await withoutStack(() => batcher.settleDetailed(waiting, call));
    for (const outcome of outcomes) ended(outcome.status === "rejected" ? outcome.reason : undefined);
    if (this.#hasMore) await this.#turnEnd.reached();
    return outcomes.map((outcome) => this.#checked(outcome));
  }

  #checked(outcome: PromiseSettledResult<Served>): PromiseSettledResult<Served> {
    try {
      if (outcome.status === "fulfilled") checkResult(outcome.value.value, this.definition.output);
      return outcome;
    } catch (reason) {
      return { status: "rejected", reason };
    }
  }

  /** Runs the items that are not refused. */
  async #runOthers(
    items: readonly unknown[],
    refusals: readonly (Error | undefined)[],
    options: InferOptions,
  ): Promise<PromiseSettledResult<Served>[]> {
    const others = await this.#runAll(
      items.filter((_, index) => refusals[index] === undefined),
      options,
    );
    let next = 0;
    return refusals.map((reason) => (reason === undefined ? others[next++]! : { status: "rejected", reason }));
  }

  #waiting(item: unknown, options: InferOptions): unknown {
    return this.#isTenanted ? new Tenanted(item, options.caller, senderOf(options)) : item;
  }

  #openBatcher(isApart: boolean): ModelBatcher {
    const { definition, settings, maxBatchSize, cache } = this;
    const found = ({ item, sender }: Tenanted, error: unknown): void => {
      this.#foundInputs!.add(item, error);
      this.#accounts.broke(sender, error);
    };
    const batcher = localBatcher(definition, settings, maxBatchSize, cache, found, isApart);
    this.#observe(batcher, isApart);
    return batcher;
  }

  #observe(batcher: ModelBatcher, isApart: boolean = false): void {
    const end = this.#record?.add(batcher, isApart ? undefined : () => this.cache?.counts.hits ?? 0);
    if (end !== undefined) this.#endsOfRecord.push(end);
    batcher.subscribe((record) => {
      this.statistics.batch(record);
      if (record.errorCode === "RUN_TIMEOUT") this.#isReady = false;
    });
  }

  /**
   * Chooses the batcher for a request's items: apart, and behind others, while many of the sender's items break runs. The returned
   * function must be called with each outcome.
   */
  #wayOf(options: InferOptions): {
    readonly batcher: ModelBatcher;
    readonly call: CallOptions;
    ended(error?: unknown): void;
  } {
    const sender = senderOf(options);
    const isBad = this.#accounts.isBad(sender);
    const ended = (error?: unknown): void => {
      if (error === undefined) this.#accounts.passed(sender);
      // A fleet worker hands the item back.
      else if (error instanceof BatcherError && error.code === "CLOSED") this.cutOff += this.#fleet?.worker ? 0 : 1;
      // An item alone in its batch needs no search.
      else if (isBad && !(error instanceof BatcherError)) this.#accounts.broke(sender, error);
    };
    if (!isBad) return { batcher: this.batcher, call: this.#callOf(options), ended };
    if ((this.definition.run as Partial<Executor<unknown, unknown>>).runsApart === true) {
      this.#apart ??= this.#openBatcher(true);
      return { batcher: this.#apart, call: forBatcher(options), ended };
    }
    return { batcher: this.batcher, call: forBatcher({ ...options, priority: "bulk", alone: true }), ended };
  }

  /** Whether items wait. They are dispatched before replies are written, since writing takes as long as a small run. */
  get #hasMore(): boolean {
    return this.batcher.pending.queued > 0;
  }

  #became(phase: "ready" | "failed"): void {
    if (this.#phase === "loading") this.#phase = phase;
  }

  /** Marks the model as one that can never run. */
  #failed(error: unknown): void {
    this.#failure ??= error;
    if (this.#phase !== "closed") this.#phase = "failed";
  }
}

/** Most items in a batch of a model. */
export const batchSizeOf = (
  { batchSize = defaultBatchSize, maxBatchSize: most = Infinity }: ModelDefinition,
  { maxBatchSize = batchSize }: Settings,
): number => Math.min(maxBatchSize, most);

function stateOf(workers: WorkerExecutor<never, unknown> | undefined): ModelState {
  if (workers === undefined) return "ready";
  const serving = workers.instances().filter(({ role }) => role === "serving");
  if (serving.some(({ state }) => state === "ready" || state === "busy")) return "ready";
  return workers.outage === undefined ? "restarting" : "unavailable";
}
