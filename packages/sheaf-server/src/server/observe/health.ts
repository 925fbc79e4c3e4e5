import type { Health } from "../../http/health.ts";
import type { Deployment } from "../models/deployment.ts";
import type { Models } from "../models/models.ts";

/** Why a model cannot run may name paths of the server: `showsReasons` where the asker may know them. Every model has to be ready that was there at the start or has served since; `Models.status` has the exceptions. */
export function healthOf(models: Models, showsReasons: boolean): Health {
  const list = models.deployments.map((deployment) => {
    const { name, state, current } = deployment;
    const reason = showsReasons ? (deployment.reason ?? pauseOf(deployment)) : undefined;
    return {
      name,
      state,
      ...(current?.definition.device === undefined ? {} : { device: current.definition.device }),
      ...(reason === undefined ? {} : { reason }),
    };
  });
  return { status: models.status, models: list };
}

function pauseOf(deployment: Deployment): string | undefined {
  const pause = deployment.current?.stats().pause;
  return pause ? `dispatch is paused for ${Math.ceil(pause.leftMs)} ms more: ${pause.why}` : undefined;
}
