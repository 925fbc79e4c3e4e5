import { greedy } from "../policies/greedy.ts";
import type { CostModel } from "../policies/cost-model.ts";
import type { BatchRecord, Decision, Policy, QueueView } from "../policies/policy.ts";
import { warn } from "./runtime.ts";

/** A policy that cannot break its batcher: one that throws is replaced by greedy, with one warning. */
export class GuardedPolicy implements Policy {
  #policy: Policy;
  readonly #batcherName: string;

  constructor(policy: Policy, batcherName: string) {
    this.#policy = policy;
    this.#batcherName = batcherName;
  }

  get name(): string {
    return this.#policy.name;
  }

  /** What is no decision, or a moment that has passed, means now. */
  decide(view: QueueView): Decision {
    let decision: Decision | undefined;
    try {
      decision = this.#policy.decide(view);
    } catch (error) {
      this.#replace(error);
    }
    if (decision === "wait") return decision;
    if (typeof decision === "object" && decision !== null) {
      if ("run" in decision) return decision;
      if (typeof decision.waitUntilMs === "number" && decision.waitUntilMs > view.nowMs) return decision;
    }
    return { run: view.waiting };
  }

  arrived(view: QueueView): void {
    try {
      this.#policy.arrived?.(view);
    } catch (error) {
      this.#replace(error);
    }
  }

  observe(record: BatchRecord, nowMs: number, cost: CostModel): void {
    try {
      this.#policy.observe?.(record, nowMs, cost);
    } catch (error) {
      this.#replace(error);
    }
  }

  #replace(error: unknown): void {
    warn(`${this.#batcherName}: policy ${this.#policy.name} threw; dispatching greedily from now on.`, error);
    this.#policy = greedy();
  }
}
