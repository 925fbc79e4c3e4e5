import type { ServedModel } from "./served-model.ts";
import { Problem } from "../http/problem.ts";

/** The models of a server, in the order they were named, and whether it takes requests. */
export class Models {
  readonly all: readonly ServedModel[];
  #isDraining = false;
  #closing: Promise<boolean> | undefined;

  constructor(models: readonly ServedModel[]) {
    if (models.length === 0) throw new TypeError("A server needs at least one model.");
    const names = models.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) throw new TypeError(`Two models are named ${twice}; give one of them another name.`);
    this.all = models;
  }

  /** From `close` on requests get 503. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** The model of that name, in whatever state. @throws {Problem} 404. */
  find(name: string, param: string): ServedModel {
    const model = this.all.find((candidate) => candidate.name === name);
    if (model !== undefined) return model;
    const names = this.all.map((candidate) => candidate.name).join(", ");
    const message = `There is no model ${JSON.stringify(name.slice(0, 100))}; served are: ${names}.`;
    throw new Problem("MODEL_NOT_FOUND", message, { param });
  }

  /** The model of that name, or the first without a name. @throws {Problem} 404; 503 when it takes no requests. */
  take(name: string | undefined, param: string): ServedModel {
    if (this.#isDraining) throw draining();
    const model = name === undefined ? this.all[0]! : this.find(name, param);
    const { state } = model;
    if (state !== "ready" && state !== "restarting") throw notReady(model);
    return model;
  }

  /** "ok" while every model is ready. */
  get status(): "ok" | "warming" | "restarting" | "unavailable" | "draining" | "failed" {
    if (this.#isDraining) return "draining";
    const states = this.all.map(({ state }) => state);
    if (states.includes("failed") || states.includes("closed")) return "failed";
    if (states.includes("loading")) return "warming";
    if (states.includes("unavailable")) return "unavailable";
    return states.includes("restarting") ? "restarting" : "ok";
  }

  /** Resolves when every model is ready; rejects with the first failure. */
  async ready(): Promise<void> {
    await Promise.all(this.all.map((model) => model.ready()));
  }

  /** Finishes what is in; whatever `graceMs` cuts off gets `CLOSED`. Once. @returns whether nothing was cut off. */
  close(graceMs: number): Promise<boolean> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<boolean> {
    this.#isDraining = true;
    await Promise.all(this.all.map((model) => model.close(graceMs)));
    return this.all.every(({ cutOff }) => cutOff === 0);
  }
}

function draining(): Problem {
  return new Problem("DRAINING", "The server is shutting down; send the request to another one.", {
    headers: { "retry-after": "1", connection: "close" },
  });
}

function notReady(model: ServedModel): Problem {
  if (model.state === "loading")
    return new Problem("NOT_READY", `${model.name} is still loading; see /readyz.`, {
      headers: { "retry-after": "1" },
    });
  const reason = model.failure instanceof Error ? `: ${model.failure.message}` : ": it has no live worker.";
  // It may be back in a moment where its workers are on other machines; here it is started again, or has failed.
  const headers = model.state === "unavailable" ? { "retry-after": "1" } : undefined;
  return new Problem("NOT_READY", `${model.name} cannot run${reason}`, { headers });
}
