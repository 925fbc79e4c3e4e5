import type { Command } from "commander";
import { countUpTo, numberFrom, refuseGiven } from "./command.ts";

/** Flags for many callers who share the load, and for one who floods. */
export interface TenantOptions {
  readonly tenants?: number;
  readonly flood?: number;
}

const mostTenants = 10_000;
const mostTimes = 1_000_000;

export const withTenants = (command: Command, floodUnit: string): Command =>
  command
    .option("--tenants <n>", "split the load evenly over n callers", countUpTo(mostTenants))
    .option("--flood <n>", `with --tenants: add a caller that sends ${floodUnit}`, numberFrom(0.001, mostTimes));

/** Whether there are tenants. @throws {UsageError} for a flag that needs them. */
export function hasTenants(command: Command, others: readonly string[] = []): boolean {
  if (command.opts<TenantOptions>().tenants !== undefined) return true;
  refuseGiven(command, ["flood", ...others], "needs --tenants.");
  return false;
}
