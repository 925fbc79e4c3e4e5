import { headers } from "@nats-io/transport-node";
import type { NatsConnection, NatsQueueOptions } from "sheaf/internal/nats";
import type { FleetLog } from "./fleet-log.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import type { Settings } from "../../settings/settings.ts";

const minMaxAgeMs = 60_000;

/** The queue of a model, where gateways and workers of the same name meet. It knows only the name, not the model. */
export function queueOf(name: string, settings: Settings, connection: NatsConnection, log: FleetLog): NatsQueueOptions {
  return {
    connection,
    headers,
    queue: name,
    onWarning: (message, cause) => log.warn(cause === undefined ? {} : { err: cause }, message.replace(/^sheaf: /, "")),
    durability: settings.natsDurability,
    maxQueueSize: settings.queueMaxSize,
    replicas: settings.natsReplicas,
    ackWaitMs: settings.natsAckWaitMs,
    // Never drop an item while its caller still waits.
    maxAgeMs: Math.max(minMaxAgeMs, settings.requestTimeoutMs + 1000),
  };
}

/** The description of a model that a worker announces and a gateway expects. */
export const descriptionOf = ({ input, output }: Pick<ModelDefinition, "input" | "output">): string =>
  JSON.stringify({ input, output });
