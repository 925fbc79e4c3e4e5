import type { CostModel } from "../../policies/cost-model.ts";
import { urgency } from "../../policies/overtaking.ts";

/** An item that may go in the next batch, as far as its cost decides. */
export interface Candidate {
  /** Items of a higher tier (a lower number) go before all others. */
  readonly tier: number;
  readonly weight: number;
  readonly arrivedAtMs: number;
  /** `Infinity` without one. */
  readonly deadlineAtMs: number;
  /** From then on no newer item of its tier goes before it. */
  readonly dueAtMs: number;
  /** Items of one order, which may go only after those of the same that came before; undefined without. */
  readonly order?: unknown;
  /** The tenant in whose turn it goes; undefined without tenants. */
  readonly payer?: Payer | undefined;
}

/** A tenant: the one with the least goes next. */
export interface Payer {
  readonly served: number;
  readonly share: number;
}

/** How a batch is composed while weights explain run times. */
export interface Costs {
  readonly cost: CostModel;
  /** Longest run, unless the first item alone takes longer. */
  readonly targetMs: number;
  /** The same of a run that bulk items fill. */
  readonly bulkMs?: number | undefined;
  /** As far as deadlines are concerned, a run takes this many times its expected time. */
  readonly caution: number;
}

/** The limits of one batch. A first item that weighs more goes alone. */
export interface BatchLimits {
  readonly maxBatchSize: number;
  readonly maxBatchWeight: number;
  /** Whether `maxBatchWeight` counts the heaviest item times the number of items. */
  readonly padded: boolean;
  /** The most bulk beside live calls; undefined without a limit. */
  readonly fill: { readonly items: number; readonly weight: number } | undefined;
  /** Only bulk goes: it is its turn. */
  readonly onlyBulk: boolean;
}

/** An item joins a batch where that adds at most this share of the time of a run of its own. */
const joinShare = 0.75;

/**
 * Chooses by cost which of the waiting items go together; returns them in the order in which they go.
 *
 * They go in order of `urgency`, those that are due first; tenants take turns, each with its own in that order. An item that
 * does not fit is passed over: it would make the run longer than the target, or too late for an item that can still be in
 * time, or the others would pay nearly as much for its company as a run of its own takes. They pay it all the same where
 * the items left gain more: each of them goes earlier by the part of a run that is saved.
 */
export function compose<T extends Candidate>(
  candidates: readonly T[],
  { maxBatchSize, maxBatchWeight, padded }: BatchLimits,
  { cost, targetMs, bulkMs = Infinity, caution }: Costs,
  nowMs: number,
): T[] {
  const lastOf = new Map<unknown, number>();
  const inTurn = candidates.map((candidate, place) => {
    const { weight, order } = candidate;
    const loneMs = cost.of(1, weight, weight);
    const isDue = nowMs >= candidate.dueAtMs;
    let urgent = isDue ? Infinity : urgency(loneMs, nowMs - candidate.arrivedAtMs);
    if (order !== undefined) {
      // No more urgent than the one before it, which it must not overtake.
      urgent = Math.min(urgent, lastOf.get(order) ?? Infinity);
      lastOf.set(order, urgent);
    }
    return { candidate, place, loneMs, urgent, canMakeIt: nowMs + caution * loneMs <= candidate.deadlineAtMs };
  });
  inTurn.sort(
    (a, b) => a.candidate.tier - b.candidate.tier || (a.urgent === b.urgent ? a.place - b.place : b.urgent - a.urgent),
  );
  if (candidates[0]?.payer !== undefined) takeTurns(inTurn);
  const chosen: T[] = [];
  const passedOrders = new Set<unknown>();
  let weight = 0;
  let heaviest = 0;
  let runMs = 0;
  let firstDeadlineAtMs = Infinity;
  for (const { candidate, loneMs, canMakeIt } of inTurn) {
    if (chosen.length >= maxBatchSize) break;
    const size = chosen.length + 1;
    const withItWeight = weight + candidate.weight;
    const withItHeaviest = Math.max(heaviest, candidate.weight);
    const withItMs = cost.of(size, withItWeight, withItHeaviest);
    const addsMs = withItMs - runMs;
    const left = inTurn.length - chosen.length;
    // One that is late anyway must not keep the others from being in time.
    const deadlineAtMs = canMakeIt ? Math.min(firstDeadlineAtMs, candidate.deadlineAtMs) : firstDeadlineAtMs;
    const fits =
      withItMs <= (candidate.tier === 2 ? Math.min(targetMs, bulkMs) : targetMs) &&
      (addsMs <= joinShare * loneMs || addsMs * chosen.length <= (loneMs - addsMs) * left) &&
      nowMs + caution * withItMs <= deadlineAtMs &&
      (padded ? withItHeaviest * size : withItWeight) <= maxBatchWeight;
    if ((size > 1 && !fits) || passedOrders.has(candidate.order)) {
      if (candidate.order !== undefined) passedOrders.add(candidate.order);
      continue;
    }
    chosen.push(candidate);
    weight = withItWeight;
    heaviest = withItHeaviest;
    runMs = withItMs;
    firstDeadlineAtMs = deadlineAtMs;
  }
  return chosen;
}

/** Sorts candidates that stand in order of urgency by turns of their tenants: by what each has had before it. */
function takeTurns<T extends Candidate>(inTurn: { readonly candidate: T }[]): void {
  const accounts = new Map<Payer, number>();
  const lastOf = new Map<unknown, number>();
  const befores = new Map<T, number>();
  for (const { candidate } of inTurn) {
    const { order, weight } = candidate;
    const payer = candidate.payer!;
    let before = accounts.get(payer) ?? payer.served;
    // Not before an item of its order that came earlier.
    if (order !== undefined) lastOf.set(order, (before = Math.max(before, lastOf.get(order) ?? 0)));
    accounts.set(payer, before + (weight || 1) / payer.share);
    befores.set(candidate, before);
  }
  inTurn.sort(({ candidate: a }, { candidate: b }) => a.tier - b.tier || befores.get(a)! - befores.get(b)!);
}
