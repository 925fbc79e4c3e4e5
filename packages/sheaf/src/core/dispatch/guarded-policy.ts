import { greedy } from "../../policies/greedy.ts";
import type { CostModel } from "../../policies/cost-model.ts";
import type { BatchRecord, Decision, Policy, QueueView } from "../../policies/policy.ts";
import { warn } from "../runtime/globals.ts";

/** Guards a batcher against its policy: one that throws is replaced by greedy, with one warning. */
export class GuardedPolicy {
  #policy: Policy;
  readonly #batcherName: string;

  constructor(policy: Policy, batcherName: string) {
    this.#policy = policy;
    this.#batcherName = batcherName;
  }

  /** Anything that is not a decision, or a moment in the past, means now. */
  decide(view: QueueView): Decision {
    const decision = this.#ask((policy) => policy.decide(view));
    if (decision === "wait") return decision;
    if (typeof decision === "object" && decision !== null) {
      if ("run" in decision) return decision;
      if (typeof decision.waitUntilMs === "number" && decision.waitUntilMs > view.nowMs) return decision;
    }
    return { run: view.waiting };
  }

  get aheadSize(): number {
    return this.#ask((policy) => policy.aheadSize) ?? Infinity;
  }

  /** Undefined where it leaves items in order of arrival. */
  targetMs(view: QueueView): number | undefined {
    return this.#ask((policy) => policy.targetMs?.(view));
  }

  arrived(view: QueueView): void {
    this.#ask((policy) => policy.arrived?.(view));
  }

  observe(record: BatchRecord, nowMs: number, cost: CostModel): void {
    this.#ask((policy) => policy.observe?.(record, nowMs, cost));
  }

  #ask<T>(question: (policy: Policy) => T): T | undefined {
    try {
      return question(this.#policy);
    } catch (error) {
      warn(`${this.#batcherName}: policy ${this.#policy.name} threw; dispatching greedily from now on.`, error);
      this.#policy = greedy();
      return undefined;
    }
  }
}
