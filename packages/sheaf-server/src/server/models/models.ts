import { check, checkNames, checkText, hasMethods, oneOf } from "sheaf/internal";
import type { ModelInput, ModelOutput } from "../../runners/contract/model-spec.ts";
import { defaultSettings, type Settings } from "../../settings/settings.ts";
import { Deployment, type LearnModel, type ModelSource, type OpenModel } from "./deployment.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import type { ServedModel } from "./served-model.ts";
import { Problem, retryAfter } from "../../problems/problem.ts";

type Ended = () => void;

type Can = (definition: ModelDefinition) => boolean;

const anything: Can = () => true;

/** A folder of models, as the protocols see it. */
export interface Repository {
  /** Loads what the folder has under this name now. @throws {Problem} */
  load(name: string): Promise<void>;
  /** Resolves when it has finished its requests and freed its memory. @throws {Problem} */
  unload(name: string): Promise<void>;
  unloaded(): Promise<string[]>;
}

const inputKinds = ["text", "text-pair", "floats", "tensors", "json"] satisfies ModelInput["kind"][];
const outputKinds = ["text", "vector", "labels", "score", "tensors", "json"] satisfies ModelOutput["kind"][];

/** @throws {TypeError | RangeError} if there is no model, one is not a definition, or a setting is unknown. */
export function checkServed(models: readonly ModelDefinition[], settings: Partial<Settings> = {}): void {
  checkNames(settings, defaultSettings, "settings");
  check(Array.isArray(models), "models", "an array", models, TypeError);
  if (models.length === 0) throw new TypeError("A server needs at least one model.");
  for (const [index, { name, input, output, run, settings: own = {} }] of models.entries()) {
    const at = `models[${index}].`;
    checkText(`${at}name`, name);
    oneOf(...inputKinds)(`${at}input.kind`, input?.kind);
    oneOf(...outputKinds)(`${at}output.kind`, output?.kind);
    checkNames(own, defaultSettings, `${at}settings`);
    const runs = typeof run === "function" || hasMethods(run, "run");
    check(runs, `${at}run`, "a batch function or an executor", run, TypeError);
  }
}

/** The models of a server, in the order they were named, and whether it takes requests. */
export class Models {
  /** The server's settings; a model may have its own. */
  readonly settings: Settings;
  repository: Repository | undefined;
  readonly #open: OpenModel;
  readonly #learn: LearnModel | undefined;
  readonly #byName: Map<string, Deployment> = new Map();
  /** Models that the command line or the config file names, in that order, without those of a folder. */
  readonly named: readonly string[];
  readonly #watchers: Map<(deployment: Deployment) => Ended, Map<Deployment, Ended>> = new Map();
  /** Models that have been loading since the start and have never been ready: `/readyz` waits for them too. */
  readonly #starting: Map<Deployment, Promise<void>> = new Map();
  readonly #leaving: Set<Deployment> = new Set();
  /** Whether fronts drain, whose last calls are still taken. */
  frontsDrain = false;
  #isDraining = false;
  #closing: Promise<boolean> | undefined;

  /** @throws {TypeError} if two have the same name. */
  constructor(
    models: readonly (ModelDefinition | ModelSource)[],
    settings: Settings,
    open: OpenModel,
    learn?: LearnModel,
    named: readonly string[] = models.map(({ name }) => name),
  ) {
    this.settings = settings;
    this.#open = open;
    this.#learn = learn;
    this.named = named;
    for (const name of this.named) this.add(name);
    for (const model of models) {
      const deployment = this.find(model.name, "model");
      this.await(deployment, "load" in model ? deployment.load(model) : deployment.begin(model));
    }
  }

  /** From `close` on requests get 503. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  get deployments(): readonly Deployment[] {
    return [...this.#byName.values()];
  }

  /** The models that take new requests. */
  get all(): readonly ServedModel[] {
    return this.deployments.flatMap(({ current }) => (current === undefined ? [] : [current]));
  }

  /** @throws {TypeError} if the name is taken. */
  add(name: string): Deployment {
    if (this.#byName.has(name)) throw new TypeError(`Two models are named ${name}; give one of them another name.`);
    const deployment = new Deployment(name, this.settings, this.#open, this.#learn);
    this.#byName.set(name, deployment);
    for (const [watcher, ends] of this.#watchers) ends.set(deployment, watcher(deployment));
    return deployment;
  }

  /** Takes no more requests for a name, finishes the accepted ones and frees its memory. */
  async remove(deployment: Deployment, graceMs: number): Promise<void> {
    this.#byName.delete(deployment.name);
    this.#starting.delete(deployment);
    for (const ends of this.#watchers.values()) {
      ends.get(deployment)?.();
      ends.delete(deployment);
    }
    this.#leaving.add(deployment);
    await deployment.close(graceMs, `${deployment.name} was unloaded while it loaded.`);
    if (!this.#isDraining) this.#leaving.delete(deployment);
  }

  /** Calls `watcher` for every present and later name; the function that it returns is called when the name goes. */
  watch(watcher: (deployment: Deployment) => Ended): void {
    this.#watchers.set(watcher, new Map(this.deployments.map((deployment) => [deployment, watcher(deployment)])));
  }

  /**
   * Makes `/readyz` and `ready` wait for a model. If it fails, neither succeeds. If it is optional and fails, `ready` still succeeds,
   * as does `/readyz` without STRICT_READINESS.
   */
  await(
    deployment: Deployment,
    isReady: Promise<void>,
    {
      isOptional = false,
    }: {
      /** @default false */
      readonly isOptional?: boolean;
    } = {},
  ): void {
    const mayFail = isReady.catch(() => undefined);
    this.#starting.set(deployment, isOptional ? mayFail : isReady);
    const isDone = (): void => void this.#starting.delete(deployment);
    isReady.then(isDone, isOptional && !this.settings.strictReadiness ? isDone : () => undefined);
  }

  /** The model of that name, in any state. @throws {Problem} 404. */
  find(name: string, param: string): Deployment {
    const deployment = this.#byName.get(name);
    if (deployment !== undefined) return deployment;
    const names = [...this.#byName.keys()].join(", ");
    const message = `There is no model ${JSON.stringify(name.slice(0, 100))}; served are: ${names || "none"}.`;
    throw new Problem("MODEL_NOT_FOUND", message, { param });
  }

  /** The model that serves under a name, ready or not. @throws {Problem} 404; 503 while it is unknown. */
  describe(name: string, param: string): ServedModel {
    const deployment = this.find(name, param);
    if (deployment.current === undefined) throw notServed(deployment);
    return deployment.current;
  }

  /**
   * The model for a request: the one that serves under the name. Without a name, the first model of the command line that `can`, else
   * the only one in the folder of models. Do not await anything before its `infer`, or it may close in between; `hold` keeps it open.
   * @throws {Problem} 404; 400 if a name is needed; 503 if it takes no requests.
   */
  take(name: string | undefined, param: string, can: Can = anything): ServedModel {
    this.refuseDraining();
    const deployment = name === undefined ? this.#unnamed(param, can) : this.find(name, param);
    const { current } = deployment;
    if (current === undefined) throw notServed(deployment);
    const { state } = current;
    if (state !== "ready" && state !== "restarting") throw notReady(current);
    return current;
  }

  /**
   * "ok" while every model that was there at the start or has ever been ready is ready. Optional models that failed do not count, nor
   * do later ones that load for the first time, unless there are no others.
   */
  get status(): "ok" | "warming" | "restarting" | "unavailable" | "draining" | "failed" {
    if (this.#isDraining || this.frontsDrain) return "draining";
    const { deployments } = this;
    const counted = deployments.filter((deployment) => deployment.hasBeenReady || this.#starting.has(deployment));
    const states = (counted.length > 0 ? counted : deployments).map(({ state }) => state);
    if (states.includes("failed") || states.includes("closed")) return "failed";
    if (states.includes("loading")) return "warming";
    if (states.includes("unavailable")) return "unavailable";
    return states.includes("restarting") ? "restarting" : "ok";
  }

  /** Resolves when every model of the start is ready; rejects with the first failure. */
  async ready(): Promise<void> {
    await Promise.all(this.#starting.values());
  }

  /** Finishes accepted items; those that `graceMs` cuts off get `CLOSED`. Runs once. @returns whether nothing was cut off. */
  close(graceMs: number): Promise<boolean> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  /** Cuts off accepted items, even while `close` waits for them. Resolves when no native code runs. */
  async abandon(): Promise<void> {
    const closed = this.close(0);
    await Promise.all(this.#closable.map((deployment) => deployment.close(0)));
    await closed;
  }

  get #closable(): readonly Deployment[] {
    return [...this.deployments, ...this.#leaving];
  }

  async #close(graceMs: number): Promise<boolean> {
    this.#isDraining = true;
    const all = this.#closable;
    await Promise.all(all.map((deployment) => deployment.close(graceMs)));
    return all.every(({ cutOff }) => cutOff === 0);
  }

  /** @throws {Problem} 503 while the server shuts down. */
  refuseDraining(): void {
    if (this.#isDraining) throw draining();
  }

  /** The loaded models that may answer a request without a name. */
  get unnamed(): readonly ServedModel[] {
    const [first] = this.named;
    return first === undefined ? this.all : this.all.filter(({ name }) => name === first);
  }

  /**
   * Adding a model to the folder must not silently change which one answers: a folder's model answers only if it is the only one,
   * counting models that still load.
   */
  #unnamed(param: string, can: Can): Deployment {
    // On the path of every request without a name, so no lists are built: usually the first model is the answer.
    for (const name of this.named) {
      const deployment = this.#byName.get(name);
      if (deployment === undefined) continue;
      if (deployment.current === undefined) throw notServed(deployment);
      if (can(deployment.current.definition)) return deployment;
    }
    const named = this.named.flatMap((name) => this.#byName.get(name) ?? []);
    const others = this.deployments.filter((deployment) => !named.includes(deployment));
    const isOpen = (deployment: Deployment): boolean =>
      deployment.current === undefined && deployment.state === "loading" && this.#starting.has(deployment);
    const able = others.filter((one) => isOpen(one) || (one.current !== undefined && can(one.current.definition)));
    if (able.length > 1) {
      const names = able.map(({ name }) => name).join(", ");
      throw new Problem("BAD_REQUEST", `Several models can answer: ${names}. Name one in the request.`, { param });
    }
    const deployment = able[0] ?? named[0] ?? (others.length === 1 ? others[0] : undefined);
    if (deployment !== undefined) return deployment;
    const message = others.length === 0 ? "There is no model yet; see /v1/models." : "No model here can answer this.";
    throw new Problem("MODEL_NOT_FOUND", message, { param });
  }
}

function draining(): Problem {
  return new Problem("DRAINING", "The server is shutting down; send the request to another instance.", {
    headers: { "retry-after": "1", connection: "close" },
  });
}

/** Why a name without a current model takes no requests: it is loading, or its load failed. */
function notServed({ name, state, reason }: Deployment): Problem {
  if (state === "loading") return loading(name);
  return new Problem("NOT_READY", `${name} cannot run: ${reason}`);
}

function notReady({ name, state, failure, workers, local }: ServedModel): Problem {
  // A process with its own worker waits for that.
  if (state === "loading") return loading(name, local === undefined ? failure : undefined);
  const reason = failure instanceof Error ? `: ${failure.message}` : ": it has no live worker.";
  // Workers on other machines may be back in a moment; those here say when. A failed model stays failed.
  const headers = state === "unavailable" ? retryAfter(workers?.outage?.restartInMs ?? 1000) : undefined;
  return new Problem("NOT_READY", `${name} cannot run${reason}`, { headers });
}

function loading(name: string, failure?: unknown): Problem {
  const what = failure instanceof Error ? `not ready: ${failure.message}` : "still loading";
  return new Problem("NOT_READY", `${name} is ${what}; see /readyz.`, { headers: { "retry-after": "1" } });
}
