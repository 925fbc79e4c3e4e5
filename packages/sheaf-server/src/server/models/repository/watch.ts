import type { FastifyBaseLogger } from "fastify";
import { messageOf } from "../../../problems/problem.ts";
import { modelsIn } from "./folder.ts";
import type { FolderRepository } from "./repository.ts";

const everyMs = 1000;
/** Number of looks over which a model's files must be unchanged before it is loaded, because a copy may be in progress. */
const stableLooks = 2;

interface Change {
  readonly files: string | undefined;
  readonly looks: number;
}

/**
 * Checks a folder of models once a second: loads a new or changed model once its files are stable for two looks, and unloads removed
 * ones. A failed load is retried when its files change.
 */
export class FolderWatch {
  readonly #repository: FolderRepository;
  readonly #log: FastifyBaseLogger;
  readonly #changes: Map<string, Change> = new Map();
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;
  #warned = "";

  constructor(repository: FolderRepository, log: FastifyBaseLogger) {
    this.#repository = repository;
    this.#log = log;
    this.#timer = setInterval(() => void this.look(), everyMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Looks once; looks never overlap. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#look();
      this.#warned = "";
    } catch (error) {
      // Logged once: the folder may be back in a moment.
      const message = messageOf(error);
      if (message !== this.#warned) this.#log.warn({ err: error }, "the folder of models cannot be read");
      this.#warned = message;
    } finally {
      this.#isLooking = false;
    }
  }

  async #look(): Promise<void> {
    const repository = this.#repository;
    const models = await modelsIn(repository.folder);
    for (const name of new Set([...models.keys(), ...repository.names, ...this.#changes.keys()])) {
      const paths = models.get(name);
      const files = paths === undefined ? undefined : await repository.filesOf(name, paths);
      const isSame = files === undefined ? !repository.names.includes(name) : repository.hasLoaded(name, files);
      const before = this.#changes.get(name);
      if (isSame) this.#changes.delete(name);
      else if (before === undefined || before.files !== files) this.#changes.set(name, { files, looks: 0 });
      else if (before.looks + 1 < stableLooks) this.#changes.set(name, { files, looks: before.looks + 1 });
      else {
        this.#changes.delete(name);
        this.#apply(name, files);
      }
    }
  }

  #apply(name: string, files: string | undefined): void {
    const done = files === undefined ? this.#repository.unload(name) : this.#repository.load(name);
    // The log and `/readyz` say why.
    done.catch((error: unknown) => this.#log.debug({ model: name, err: error }, "a watched model changed"));
  }
}
