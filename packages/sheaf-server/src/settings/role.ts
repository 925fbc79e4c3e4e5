import type { Settings } from "./settings.ts";

/**
 * A server's part in a fleet: `"alone"` is in none, a `"gateway"` takes requests and runs no model, a `"worker"` runs models
 * and takes no requests, and `"all"` does both.
 */
export type FleetRole = "alone" | Settings["role"];

export const roleOf = ({ natsUrl, role }: Pick<Settings, "natsUrl" | "role">): FleetRole =>
  natsUrl === undefined ? "alone" : role;
