import type { Priority } from "../../core/contract/options.ts";
import { priorities } from "../../core/contract/settings.ts";
import { check, checkCount, checkOptions, checkText, oneOf } from "../../shared/checks.ts";
import { momentsOf, type OpenArrivals } from "./arrivals.ts";
import { checkPattern } from "./checks.ts";
import { Random } from "./random.ts";

/** Callers of a simulation that are alike. */
export interface SimulatedTenants {
  /** The result has their figures under this name. */
  readonly name: string;
  /**
   * How many there are; integer >= 1.
   * @default 1
   */
  readonly count?: number | undefined;
  /** The arrivals of each of them: any pattern but `closed`. */
  readonly arrivals: OpenArrivals;
  /**
   * The priority of their calls.
   * @default "interactive"
   */
  readonly priority?: Priority | undefined;
}

const maxTenants = 100_000;

/** One tenant; its key is its index. */
interface Caller {
  readonly kind: SimulatedTenants;
  readonly key: number;
  readonly moments: () => number | undefined;
  nextAtMs: number;
}

/** The calls of all tenants, in order of time. Each tenant has its own random stream: adding one changes nothing for the others. */
export class TenantTraffic {
  readonly kinds: readonly SimulatedTenants[];
  /** The tenants that will call again, the next one last. */
  readonly #waiting: Caller[] = [];
  readonly #kindOf: SimulatedTenants[] = [];
  /** By item. */
  readonly #keys: number[] = [];

  /** @throws {TypeError | RangeError} for tenants that make no sense. */
  constructor(kinds: readonly SimulatedTenants[], seed: number) {
    const expected = "an array of { name, count, arrivals, priority }";
    check(Array.isArray(kinds) && kinds.length > 0, "tenants", expected, kinds, TypeError);
    this.kinds = kinds;
    kinds.forEach((kind, at) => {
      const path = `tenants[${at}]`;
      checkOptions(kind, checks, path);
      checkText(`${path}.name`, kind.name);
      checkPattern(`${path}.arrivals`, kind.arrivals);
    });
    const names = new Set(kinds.map(({ name }) => name));
    if (names.size < kinds.length) throw new RangeError("every name in tenants must be unique");
    const count = kinds.reduce((sum, { count: alike = 1 }) => sum + alike, 0);
    if (count > maxTenants) throw new RangeError(`there may be at most ${maxTenants} tenants, got ${count}`);
    for (const kind of kinds) {
      for (let one = 0; one < (kind.count ?? 1); one++) {
        const key = this.#kindOf.push(kind) - 1;
        this.#arm({
          kind,
          key,
          moments: momentsOf(kind.arrivals, new Random(seed + 0x9e3779b9 * (key + 1))),
          nextAtMs: 0,
        });
      }
    }
  }

  /** The moment of the next call, whose tenant is noted; undefined after the last. */
  readonly next = (): number | undefined => {
    const tenant = this.#waiting.pop();
    if (tenant === undefined) return undefined;
    const { nextAtMs } = tenant;
    this.#keys.push(tenant.key);
    this.#arm(tenant);
    return nextAtMs;
  };

  /** Of the tenant of an item. */
  readonly keyOf = (item: number): number => this.#keys[item]!;

  kindOf(item: number): SimulatedTenants {
    return this.#kindOf[this.#keys[item]!]!;
  }

  #arm(tenant: Caller): void {
    const atMs = tenant.moments();
    if (atMs === undefined) return;
    tenant.nextAtMs = atMs;
    let low = 0;
    let high = this.#waiting.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#waiting[middle]!.nextAtMs > atMs) low = middle + 1;
      else high = middle;
    }
    this.#waiting.splice(low, 0, tenant);
  }
}

const checks = {
  name: checkText,
  count: checkCount,
  arrivals: checkPattern,
  priority: oneOf(...priorities),
};
