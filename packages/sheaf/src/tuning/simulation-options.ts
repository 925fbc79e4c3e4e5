import type { BatcherOptions } from "../core/contract/options.ts";
import type { RunTimeNoise, SimulatedCost } from "./simulated-cost.ts";
import type { Arrivals } from "./traffic/arrivals.ts";
import type { Retries } from "./traffic/clients.ts";
import type { SimulatedTenants } from "./traffic/tenants.ts";
import type { Weights } from "./traffic/weights.ts";

/** What to simulate, besides the options of `createBatcher` except `clock` and `price`; an item is its number, from 0. */
export interface SimulationOptions extends Omit<BatcherOptions<number, number>, "clock" | "price"> {
  /**
   * When the calls come; needed without `tenants`.
   * @default none: they come from the `tenants`
   * @see tenants
   */
  readonly arrivals?: Arrivals | undefined;
  /**
   * Callers who share the batcher, each with its own arrivals; `result.tenants` has their figures.
   * @default none: all calls come from `arrivals`
   * @see arrivals
   * @see tenantKey
   */
  readonly tenants?: readonly SimulatedTenants[] | undefined;
  /**
   * The option of `createBatcher` by which it tells the tenants apart.
   * @default "fairKey"
   */
  readonly tenantKey?: "fairKey" | "groupKey" | "none" | undefined;
  /** Run time of a batch by its size, and by its weight. */
  readonly cost: SimulatedCost;
  /**
   * Weights of the items, which `weigh` gives to the batcher unless it is given.
   * @default every item weighs 1
   */
  readonly weights?: Weights | undefined;
  /** @default none */
  readonly noise?: RunTimeNoise | undefined;
  /**
   * Calls to make; integer, 1 … 10,000,000.
   * @default 10000, or the whole day or trace
   */
  readonly items?: number | undefined;
  /**
   * Share of the calls, from the first, that the figures leave out, 0 … 1.
   * @default 0.1
   */
  readonly warmUp?: number | undefined;
  /**
   * Shares of the calls with these priorities, 0 … 1, together at most 1; the rest is interactive.
   * @default all interactive
   */
  readonly priorities?:
    | {
        /** @default 0 */
        readonly immediate?: number | undefined;
        /** @default 0 */
        readonly bulk?: number | undefined;
      }
    | undefined;
  /**
   * Each call becomes an operation of a client that gives up and tries again.
   * @default none: every call waits to its end
   */
  readonly retries?: Retries | undefined;
  /**
   * A whole number.
   * @default 1
   */
  readonly seed?: number | undefined;
}
