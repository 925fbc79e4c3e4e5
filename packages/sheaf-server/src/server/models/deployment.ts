import type { BatchRecord, BatcherStats } from "sheaf";
import { within } from "sheaf/internal";
import { emptyStats, sumOfCounts } from "../../shared/stats-sum.ts";
import { orAborted } from "../../shared/or-aborted.ts";
import { messageOf } from "../../problems/problem.ts";
import { roleOf } from "../../settings/role.ts";
import { runTimeoutOf, type Settings } from "../../settings/settings.ts";
import { onlyVersion, type ModelDefinition } from "../contract/model-definition.ts";
import type { ModelState, ServedModel } from "./served-model.ts";

/** Where a model comes from. Its inputs are known once it has been inspected or loaded. */
export interface ModelSource {
  readonly name: string;
  /** What `load` waits for, for `/readyz`: the name of a file or folder, or a worker. */
  readonly waitsFor: string;
  /** The version that it loads, once known; undefined if the model has no versions. */
  readonly versionName?: string | undefined;
  /**
   * Returns the definition. Its workers may run already: a caller that does not serve it must close them. A fleet's gateway passes
   * `learn`.
   */
  load(signal: AbortSignal, learn?: LearnModel): Promise<ModelDefinition>;
}

/** Asks the fleet's workers for the inputs and outputs of a model. */
export type LearnModel = (name: string, settings: Settings, signal: AbortSignal) => Promise<ModelDefinition>;

/** Puts a batcher in front of a definition, here or in a fleet, and starts to load it. */
export type OpenModel = (definition: ModelDefinition) => ServedModel;

export interface EndedLoad {
  /** The model that is ready; undefined if the load failed. */
  readonly model: ServedModel | undefined;
  readonly error: unknown;
  /** The version that was loaded; undefined if unknown or if the model has no versions. */
  readonly versionName: string | undefined;
  /** The version that served before: replaced now, or still serving if the load failed. */
  readonly versionBefore: string | undefined;
}

export type LoadListener = (load: EndedLoad) => void;

interface Load {
  readonly waitsFor: string;
  /** Ends the load without counting it as failed: the caller knows why. */
  cutOff(why: Error): void;
  readonly ended: Promise<unknown>;
}

interface ReportedLoad extends Pick<EndedLoad, "versionBefore"> {
  readonly source: Pick<ModelSource, "versionName">;
  readonly isCutOff?: () => boolean;
}

/** A name under which a server serves: the model that new requests go to, older ones that finish, and the next load. */
export class Deployment {
  readonly name: string;
  readonly settings: Settings;
  /** The model that gets new requests; undefined until its inputs are known, and while none is loaded. */
  current: ServedModel | undefined;
  readonly #open: OpenModel;
  readonly #learn: LearnModel | undefined;
  readonly #servedListeners: Set<(model: ServedModel) => void> = new Set();
  readonly #listeners: Set<(record: BatchRecord) => void> = new Set();
  readonly #loadListeners: Set<LoadListener> = new Set();
  #lastLoad: EndedLoad | undefined;
  #hasBeenReady = false;
  readonly #finishing: Map<ServedModel, Promise<void>> = new Map();
  /** The counts of models that are gone. */
  #gone: BatcherStats | undefined;
  #load: Load | undefined;
  #failure: unknown;
  #cutOff = 0;
  #isClosed = false;

  constructor(name: string, settings: Settings, open: OpenModel, learn?: LearnModel) {
    this.name = name;
    this.settings = settings;
    this.#open = open;
    this.#learn = learn;
  }

  get state(): ModelState {
    if (this.#isClosed) return "closed";
    if (this.current !== undefined) return this.current.state;
    return this.#failure === undefined ? "loading" : "failed";
  }

  /** What it waits for, or why it or a newer version cannot serve. */
  get reason(): string | undefined {
    const { current } = this;
    if (current?.failure !== undefined) return messageOf(current.failure);
    if (this.state === "loading") return this.#load && `waits for ${this.#load.waitsFor}`;
    if (this.#failure === undefined) return undefined;
    const why = messageOf(this.#failure);
    return current === undefined ? why : `the last load failed, and the version before it serves: ${why}`;
  }

  get hasBeenReady(): boolean {
    return this.#hasBeenReady;
  }

  get hasFailedLoad(): boolean {
    return this.#failure !== undefined;
  }

  /** Items that a shutdown cut off before their result. */
  get cutOff(): number {
    const there = [...this.#finishing.keys(), ...(this.current === undefined ? [] : [this.current])];
    return there.reduce((sum, { cutOff }) => sum + cutOff, this.#cutOff);
  }

  /** Serves a known definition. Requests are told to come back until it is ready. */
  begin(definition: ModelDefinition): Promise<void> {
    const model = this.#open(definition);
    this.#serve(model);
    const ready = model.ready();
    this.#report(
      ready.then(() => model),
      { source: definition, versionBefore: undefined },
    );
    return ready;
  }

  /**
   * Loads a version. The previous one serves until the new one is ready and then finishes its requests; if the load fails, it stays.
   * One load at a time, within LOAD_TIMEOUT_MS. @throws the reason of the failure.
   */
  async load(source: ModelSource): Promise<void> {
    if (this.#load !== undefined) throw new Error(`${this.name} is loading already.`);
    const abort = new AbortController();
    const timeout = new AbortController();
    const { current } = this;
    if (current?.state === "failed") this.#finish(current, 0);
    const endTimeout = this.#after(() => {
      timeout.abort(tooLong(this.settings));
      abort.abort(timeout.signal.reason);
    });
    const loading = orAborted(this.#loadFrom(source, abort.signal, endTimeout), timeout.signal).finally(endTimeout);
    const before = this.current?.definition;
    const versionBefore = before && (before.versionName ?? onlyVersion);
    let isCutOff = false;
    this.#report(loading, { source, versionBefore, isCutOff: () => isCutOff });
    const ended = loading.then(
      () => {
        this.#load = undefined;
        this.#failure = undefined;
      },
      (error: unknown) => {
        this.#load = undefined;
        if (!isCutOff) this.#failure = error;
      },
    );
    const cutOff = (why: Error): void => {
      isCutOff = true;
      abort.abort(why);
    };
    this.#load = { waitsFor: source.waitsFor, cutOff, ended };
    await ended;
    await loading;
  }

  /** Resolves when the models before the current one have finished. */
  async finished(): Promise<void> {
    await Promise.all(this.#finishing.values());
  }

  /** Finishes accepted items within `graceMs` and frees the memory; cuts off a load. */
  async close(graceMs: number, why: string = "The server is shutting down."): Promise<void> {
    this.#load?.cutOff(new Error(why));
    const models = [...this.#finishing.keys()];
    if (this.current !== undefined) models.push(this.current);
    await Promise.all(models.map((model) => model.close(graceMs)));
    await within(this.#load?.ended, graceMs);
    this.#isClosed = true;
  }

  /** Counts are sums over all its models; every other figure is the current model's. */
  stats(): BatcherStats {
    const now = this.current?.stats() ?? emptyStats(this.name);
    const others = [...this.#finishing.keys()].map((model) => model.stats());
    if (this.#gone !== undefined) others.push(this.#gone);
    return { ...now, ...sumOfCounts([now, ...others]) };
  }

  subscribe(listener: (record: BatchRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Called with the current model, and with each later one when it begins to serve. */
  onServed(listener: (model: ServedModel) => void): () => void {
    this.#servedListeners.add(listener);
    if (this.current !== undefined) listener(this.current);
    return () => void this.#servedListeners.delete(listener);
  }

  /** Called with the outcome of the last load, if there is one, and of each later one. */
  onLoad(listener: LoadListener): () => void {
    this.#loadListeners.add(listener);
    if (this.#lastLoad !== undefined) listener(this.#lastLoad);
    return () => void this.#loadListeners.delete(listener);
  }

  /** No timeout in a gateway: it waits for workers, which may be away for longer than any load. */
  #after(timeout: () => void): () => void {
    if (roleOf(this.settings) === "gateway") return () => undefined;
    const timer = setTimeout(timeout, this.settings.loadTimeoutMs);
    return () => clearTimeout(timer);
  }

  #report(loading: Promise<ServedModel>, { source, versionBefore, isCutOff }: ReportedLoad): void {
    const report = (model: ServedModel | undefined, error: unknown): void => {
      const isSwitch = model !== undefined && versionBefore !== undefined;
      const versionName = source.versionName ?? (isSwitch ? onlyVersion : undefined);
      this.#hasBeenReady ||= model !== undefined;
      this.#lastLoad = { model, error, versionName, versionBefore };
      for (const listener of this.#loadListeners) listener(this.#lastLoad);
    };
    loading.then(
      (model) => report(model, undefined),
      (error: unknown) => isCutOff?.() !== true && report(undefined, error),
    );
  }

  /** @param hasLoaded called when the model is ready here and only its fleet is not */
  async #loadFrom(source: ModelSource, signal: AbortSignal, hasLoaded: () => void): Promise<ServedModel> {
    const definition = await source.load(signal, this.#learn).catch((error: unknown) => {
      throw signal.aborted ? signal.reason : error;
    });
    if (signal.aborted) {
      if (typeof definition.run !== "function") await definition.run.close();
      throw signal.reason;
    }
    const next = this.#open(definition);
    // The first version can take requests' inputs from now on.
    const isFirst = this.current === undefined;
    if (isFirst) this.#serve(next);
    // It may wait forever, for example for a NATS server that is away.
    signal.addEventListener("abort", () => void next.close(0).catch(() => undefined), { once: true });
    const ready = next.ready().then(() => next.local?.ready());
    ready.catch(() => undefined);
    try {
      await orAborted(next.loaded(), signal);
      hasLoaded();
      await orAborted(ready, signal);
    } catch (error) {
      if (isFirst) this.#finish(next, 0);
      else await next.close(0);
      throw signal.aborted ? signal.reason : error;
    }
    const before = this.current;
    if (before === undefined || before === next) return next;
    this.#serve(next);
    this.#finish(before, longestAnswerMs(before.settings));
    return next;
  }

  #serve(model: ServedModel): void {
    this.current = model;
    model.subscribe((record) => {
      for (const listener of this.#listeners) listener(record);
    });
    for (const listener of this.#servedListeners) listener(model);
  }

  #finish(model: ServedModel, graceMs: number): void {
    if (this.current === model) this.current = undefined;
    const closed = model
      .close(graceMs)
      .catch((error: unknown) => void (this.#failure ??= error))
      .then(() => {
        this.#finishing.delete(model);
        this.#cutOff += model.cutOff;
        const gone = this.#gone ?? emptyStats(this.name);
        this.#gone = { ...gone, ...sumOfCounts([gone, model.stats()]), queued: 0, inFlight: 0, hungRuns: 0 };
      });
    this.#finishing.set(model, closed);
  }
}

const tooLong = ({ loadTimeoutMs }: Settings): Error =>
  new Error(
    `it was not ready after ${loadTimeoutMs} ms (LOAD_TIMEOUT_MS). Check why its load or warm-up does not return, or raise it.`,
  );

/** Within which every request that a model has taken is answered. */
export const longestAnswerMs = (settings: Settings): number => settings.requestTimeoutMs + runTimeoutOf(settings);
