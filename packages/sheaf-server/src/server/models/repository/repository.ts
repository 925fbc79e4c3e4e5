import type { FastifyBaseLogger } from "fastify";
import { Problem, messageOf } from "../../../problems/problem.ts";
import { modelOutput } from "../../../observe/log.ts";
import type { Settings } from "../../../settings/settings.ts";
import type { ModelEntry } from "../../../settings/config.ts";
import { longestAnswerMs, type Deployment, type ModelSource } from "../deployment.ts";
import { fileSource } from "../file-source.ts";
import type { Models } from "../models.ts";
import { findModel, modelsIn, type FolderVersion } from "./folder.ts";
import { LoadTurns } from "./load-turns.ts";

interface WaitingLoad {
  readonly loaded: Promise<void>;
  isCancelled: boolean;
}

type FolderEntry = Pick<ModelEntry, "model" | "settings">;

interface RepositoryParts {
  readonly models: Models;
  readonly settings: Settings;
  readonly log: FastifyBaseLogger;
}

/** The models of a folder: loaded, replaced and unloaded while the server runs. */
export class FolderRepository {
  readonly folder: string;
  readonly #own: Partial<Settings>;
  readonly #models: Models;
  readonly #settings: Settings;
  readonly #log: FastifyBaseLogger;
  readonly #deployments: Map<string, Deployment> = new Map();
  readonly #waiting: Map<string, WaitingLoad> = new Map();
  readonly #leaving: Map<string, Promise<void>> = new Map();
  /** By name: the fingerprint of the last load's files, or why there were none. */
  readonly #loadedFiles: Map<string, string> = new Map();
  readonly #loading: Map<string, Promise<unknown>> = new Map();
  readonly #turns = new LoadTurns();

  private constructor({ model, settings: own }: FolderEntry, { models, settings, log }: RepositoryParts) {
    this.folder = model;
    this.#own = own;
    this.#models = models;
    this.#settings = settings;
    this.#log = log;
  }

  /** Starts to load the models in the folder. @throws {Error} if it cannot be read. */
  static async open(folder: FolderEntry, parts: RepositoryParts): Promise<FolderRepository> {
    const repository = new FolderRepository(folder, parts);
    const { models } = parts;
    for (const name of (await modelsIn(folder.model)).keys()) {
      const deployment = models.add(name);
      repository.#deployments.set(name, deployment);
      // A broken model does not end the server, since its file can be replaced.
      models.await(deployment, repository.load(name), { isOptional: true });
    }
    return repository;
  }

  async unloaded(): Promise<string[]> {
    return [...(await modelsIn(this.folder)).keys()].filter((name) => !this.#deployments.has(name));
  }

  /**
   * Loads the present files of this name; the serving version goes on until the new one is ready. Calls that come while the load
   * waits for its turn share it.
   * @throws {Problem} 404; 422 with the reason why it did not load; 503.
   */
  async load(name: string): Promise<void> {
    this.#refuseDraining();
    const waiting = this.#waiting.get(name);
    if (waiting?.isCancelled === false) return waiting.loaded;
    if (!this.#deployments.has(name)) await this.#checkName(name);
    return (this.#waiting.get(name) ?? this.#enqueue(name)).loaded;
  }

  /** Takes no more requests, finishes the accepted ones and frees the memory. @throws {Problem} 404; 503. */
  async unload(name: string): Promise<void> {
    this.#refuseDraining();
    const deployment = this.#deployments.get(name);
    if (deployment === undefined && !this.#leaving.has(name)) await this.#checkName(name);
    const waiting = this.#waiting.get(name);
    if (waiting !== undefined) {
      waiting.isCancelled = true;
      this.#waiting.delete(name);
    }
    if (deployment !== undefined) {
      this.#deployments.delete(name);
      const left = this.#models.remove(deployment, longestAnswerMs(this.#settings));
      this.#leaving.set(name, left);
      const end = (): void => void (this.#leaving.get(name) === left && this.#leaving.delete(name));
      left.then(end, end);
      left.then(
        () => this.#log.info({ model: name }, "model unloaded"),
        (error: unknown) => this.#log.warn({ model: name, err: error }, "model did not close"),
      );
    }
    await this.#leaving.get(name);
    // If it is gone from the folder too, forget it.
    if (!(await modelsIn(this.folder)).has(name)) this.#loadedFiles.delete(name);
  }

  /** Whether `files`, a result of `filesOf`, are those of the name's last load. */
  hasLoaded(name: string, files: string): boolean {
    return this.#loadedFiles.get(name) === files;
  }

  get names(): readonly string[] {
    return [...this.#deployments.keys()];
  }

  /** Fingerprint of the model's files, or the reason it cannot be loaded. */
  async filesOf(name: string, paths: readonly string[]): Promise<string> {
    return filesOrWhyNot(findModel(this.folder, name, paths));
  }

  #enqueue(name: string): WaitingLoad {
    const before = this.#loading.get(name);
    const load = async (): Promise<void> => {
      await before;
      const isReplacement = this.#deployments.get(name)?.current !== undefined;
      const endTurn = await this.#turns.next({ isReplacement });
      try {
        if (waiting.isCancelled) throw new Problem("LOAD_FAILED", `${name} was unloaded before it began to load.`);
        this.#waiting.delete(name);
        await this.#leaving.get(name)?.catch(() => undefined);
        this.#refuseDraining();
        await this.#loadNow(name);
      } finally {
        // The previous version leaves memory first.
        void Promise.resolve(this.#deployments.get(name)?.finished()).then(endTurn);
      }
    };
    const waiting: WaitingLoad = { loaded: load(), isCancelled: false };
    this.#waiting.set(name, waiting);
    const ended: Promise<unknown> = waiting.loaded
      .catch(() => undefined)
      .then(() => this.#loading.get(name) === ended && this.#loading.delete(name));
    this.#loading.set(name, ended);
    return waiting;
  }

  async #loadNow(name: string): Promise<void> {
    let deployment = this.#deployments.get(name);
    if (deployment === undefined) this.#deployments.set(name, (deployment = this.#models.add(name)));
    try {
      await deployment.load(this.#sourceOf(name));
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Problem("LOAD_FAILED", `${name} did not load: ${messageOf(error)}`, { cause: error });
    }
  }

  #sourceOf(name: string): ModelSource {
    let found: FolderVersion | undefined;
    return {
      name,
      waitsFor: name,
      get versionName() {
        return found?.versionName;
      },
      load: async (signal, learn) => {
        const paths = (await modelsIn(this.folder)).get(name);
        if (paths === undefined) throw new Error(`${name} is no longer in the folder of models.`);
        const finding = findModel(this.folder, name, paths);
        this.#loadedFiles.set(name, await filesOrWhyNot(finding));
        found = await finding;
        const { model, versionName } = found;
        const source = fileSource({ model, name, settings: this.#own }, this.#settings, modelOutput(this.#log, name));
        const definition = await source.load(signal, learn);
        if (definition.sampleFailure === undefined) return { ...definition, versionName };
        if (typeof definition.run !== "function") await definition.run.close();
        throw new Error(`it fails on its own sample: ${definition.sampleFailure}`);
      },
    };
  }

  async #checkName(name: string): Promise<void> {
    const models = await modelsIn(this.folder);
    if (models.has(name)) {
      if (!this.#models.deployments.some((deployment) => deployment.name === name) || this.#deployments.has(name))
        return;
      throw new Problem("LOAD_FAILED", `${name} is already served from outside the folder of models.`);
    }
    const message = `There is no model ${JSON.stringify(name.slice(0, 100))} in the folder of models.`;
    throw new Problem("MODEL_NOT_FOUND", message, { param: "model" });
  }

  #refuseDraining(): void {
    if (this.#models.isDraining) throw new Problem("DRAINING", "The server is shutting down.");
  }
}

const filesOrWhyNot = (finding: Promise<FolderVersion>): Promise<string> =>
  finding.then(({ signature }) => signature, messageOf);
