import type { Health } from "../../http/health.ts";
import type { Models } from "../models/models.ts";

/** Why a model cannot run may name paths of the server: `showsReasons` where the asker may know them. Every model has to be ready that was there at the start or has served since; `Models.status` has the exceptions. */
export function healthOf(models: Models, showsReasons: boolean): Health {
  const list = models.deployments.map(({ name, state, reason, current }) => ({
    name,
    state,
    ...(current?.definition.device === undefined ? {} : { device: current.definition.device }),
    ...(reason === undefined || !showsReasons ? {} : { reason }),
  }));
  return { status: models.status, models: list };
}
