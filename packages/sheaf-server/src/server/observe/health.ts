import type { Health } from "../../http/health.ts";
import type { Deployment } from "../models/deployment.ts";
import type { Models } from "../models/models.ts";

/**
 * The answer of the health routes. Reasons may name paths on the server, so `showsReasons` says whether the client may see them.
 * Every model that was there at the start or has served since must be ready; `Models.status` lists the exceptions.
 */
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
