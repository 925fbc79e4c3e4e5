import { adaptive, auto, greedy, window, type Policy } from "sheaf";
import type { Settings } from "../settings.ts";

/** The policy of SCHEDULER_STRATEGY; a new one for each batcher. */
export function policyOf(settings: Settings): Policy {
  switch (settings.schedulerStrategy) {
    case "auto":
      return auto({ latencyBudgetMs: settings.latencyBudgetMs });
    case "greedy":
      return greedy();
    case "fifo":
      return window();
    case "adaptive":
      return adaptive({ targetLatencyMs: settings.adaptiveTargetLatencyMs });
  }
}
