import { BatcherError, type Priority } from "sheaf";
import { priorities } from "sheaf/internal/http";
import { Problem, retryIn } from "../problems/problem.ts";
import { withoutStack } from "../problems/without-stack.ts";
import type { ApiKey, SentKey } from "./api-keys.ts";
import type { Meter } from "./meter.ts";
import type { ItemOutcome, Tenant, Tenants } from "./tenants.ts";

export interface Load {
  readonly items: number;
  /** Called where the tenant's weight is bounded. */
  weight(): number;
}

/** The part of a call's options that depends on who calls. */
interface Asking {
  readonly caller?: Caller | undefined;
  readonly priority?: Priority | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a request's items within its tenant's bounds, in a lane that its key allows, and counts their outcomes: the same for all, or
 * as `outcomesOf` says.
 * @throws {Problem} 401 for a removed key, 429 over a bound.
 */
export function runAs<Options extends Asking, T>(
  options: Options,
  load: Load,
  run: (options: Options) => Promise<T>,
  outcomesOf?: (result: T) => readonly PromiseSettledResult<unknown>[],
): Promise<T> {
  const { caller, priority, signal } = options;
  if (caller === undefined) return run(options);
  const lane = caller.laneOf(priority);
  const leave = caller.enter(load, lane === "bulk");
  return run({ ...options, priority: lane }).then(
    (result) => {
      if (outcomesOf === undefined) leave("ok", load.items);
      else
        for (const outcome of outcomesOf(result))
          leave(outcome.status === "fulfilled" ? "ok" : outcomeOf(outcome.reason, signal), 1);
      return result;
    },
    (error: unknown) => {
      leave(outcomeOf(error, signal), load.items);
      throw error;
    },
  );
}

/** Counts the callers' items as running until the run has ended. */
export function whileRunning<T>(callers: readonly (Caller | undefined)[], run: () => T): T {
  for (const caller of callers) caller?.runStarted();
  const end = (): void => {
    for (const caller of callers) caller?.runEnded();
  };
  try {
    const running = run();
    if (typeof (running as { then?: unknown } | undefined)?.then !== "function") {
      end();
      return running;
    }
    return (running as PromiseLike<unknown>).then(
      (results) => {
        end();
        return results;
      },
      (error: unknown) => {
        end();
        throw error;
      },
    ) as T;
  } catch (error) {
    end();
    throw error;
  }
}

/** The sender of a request, with its tenant and its rights. */
export class Caller {
  readonly #sent: SentKey | undefined;
  readonly tenant: Tenant;
  readonly #tenants: Tenants;
  /** The caller of the same key whose request names this user; undefined where users are not tenants. */
  readonly ofUser: ((user: unknown) => Caller) | undefined;
  /** The lower lane that a request was moved to; undefined if it was not. */
  loweredTo: Priority | undefined;
  /** Its running items. */
  #running = 0;
  /** Running items that nobody waits for any more; they still count. */
  #abandoned = 0;
  #isWaiting = false;
  #isBulk = false;
  #startedAtMs = 0;

  constructor(tenants: Tenants, tenant: Tenant, sent: SentKey | undefined, ofUser?: (user: unknown) => Caller) {
    this.#tenants = tenants;
    this.tenant = tenant;
    this.#sent = sent;
    this.ofUser = ofUser;
  }

  /** A copy for another request of the same stream. */
  again(): Caller {
    return new Caller(this.#tenants, this.tenant, this.#sent);
  }

  /** Undefined if the server requires no key. */
  get key(): ApiKey | undefined {
    return this.#sent?.key;
  }

  /** Whether its key has been replaced or removed since: open requests end, and no new ones begin. */
  get isGone(): boolean {
    return this.#sent !== undefined && !this.#sent.key.has(this.#sent.digest);
  }

  get isOperator(): boolean {
    return this.key === undefined || this.key.terms.isOperator;
  }

  /** The lane that its items get, at most the key's highest. */
  laneOf(asked: Priority = "interactive"): Priority {
    const highest = this.key?.terms.highestLane ?? "immediate";
    if (priorities.indexOf(asked) >= priorities.indexOf(highest)) return asked;
    return (this.loweredTo = highest);
  }

  /**
   * Admits items. @returns a function that takes them out again, some at a time.
   * @throws {Problem} 401 for a removed key, 429 over a bound, with the time to wait.
   */
  enter({ items, weight }: Load, isBulk: boolean): (outcome: ItemOutcome, items: number) => void {
    if (this.isGone) throw keyIsGone();
    const startedAtMs = performance.now();
    const { tenant } = this;
    const tenants = this.#tenants;
    const meters = this.#meters;
    for (const meter of meters) {
      const over = meter.overBound(items, weight, startedAtMs, isBulk);
      if (over === undefined) continue;
      tenants.refused(tenant, items);
      throw tooMany(tenant, over.reason, over.waitMs);
    }
    for (const meter of meters) meter.enter(items, weight, startedAtMs, isBulk);
    tenants.entered(tenant, items);
    this.#startedAtMs = startedAtMs;
    this.#isBulk = isBulk;
    let waiting = items;
    this.#isWaiting = true;
    return (outcome, ended) => {
      waiting -= ended;
      this.#isWaiting = waiting > 0;
      tenants.count(tenant, outcome, ended);
      const isOver = outcome === "ok" || outcome === "error";
      const abandoned = isOver ? 0 : Math.min(ended, this.#running - this.#abandoned);
      this.#abandoned += abandoned;
      this.#leave(ended - abandoned);
    };
  }

  /** Counts a running item until its run ends, so that hanging up does not make room for more. */
  runStarted(): void {
    this.#running++;
    // Equal items share a run: an abandoned item may have taken this one's place in it.
    if (this.#isWaiting) return;
    this.#abandoned++;
    for (const meter of this.#meters) meter.goes(1, this.#isBulk);
    this.#tenants.left(-1);
  }

  runEnded(): void {
    this.#running--;
    if (this.#abandoned <= this.#running) return;
    this.#abandoned--;
    this.#leave(1);
  }

  #leave(items: number): void {
    const tookMs = performance.now() - this.#startedAtMs;
    for (const meter of this.#meters) meter.leave(items, tookMs, this.#isBulk);
    this.#tenants.left(items);
  }

  /** A key's bounds apply to all its tenants together, even invented ones. */
  get #meters(): readonly Meter[] {
    const { key, tenant } = this;
    return key === undefined || key.terms.name === tenant.name ? [tenant.meter] : [key.meter, tenant.meter];
  }
}

/** The outcome of an item that failed with this error. */
function outcomeOf(error: unknown, signal: AbortSignal | undefined): Exclude<ItemOutcome, "ok"> {
  if (signal?.aborted === true) return "aborted";
  if (!(error instanceof BatcherError)) return "error";
  if (error.code === "QUEUE_FULL" || error.code === "CLOSED") return "rejected";
  return error.code === "TIMEOUT" ? "timeout" : "error";
}

export const keyIsGone = (): Problem => new Problem("UNAUTHORIZED", "The key is no longer valid.");

/** Spreads the return of callers who were refused together. */
const spread = 0.25;

function tooMany({ name }: Tenant, reason: string, waitMs: number): Problem {
  const retryMs = Math.max(1, Math.ceil(waitMs * (1 + spread * Math.random())));
  const message = `${name} may send ${reason}. Retry in ${retryMs} ms.`;
  return withoutStack(() => new Problem("TENANT_LIMIT", message, { headers: retryIn(retryMs) }));
}
