import { natsWorker, type NatsWorker } from "sheaf/adapters/nats";
import type { ModelSource } from "../models/deployment.ts";
import { LocalModel } from "../models/local-model.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import { Models } from "../models/models.ts";
import type { ServedModel } from "../contract/served-model.ts";
import type { Settings } from "../../settings/settings.ts";
import { announcedModels } from "./announced-model.ts";
import { withoutPassword } from "./connection-options.ts";
import { FleetConnection } from "./connection.ts";
import { FleetModel } from "./fleet-model.ts";
import type { FleetLog } from "./fleet-log.ts";
import { descriptionOf, queueOf } from "./queue.ts";
import { roleOf } from "../../settings/role.ts";

export interface Fleet {
  readonly models: Models;
  /** After the models are closed. */
  leave(): Promise<void>;
}

/** The models of a server that is part of a fleet, as its role has them: gateways call, workers run, `all` does both. */
export function joinFleet(
  models: readonly (ModelDefinition | ModelSource)[],
  settings: Settings,
  log: FleetLog,
): Fleet {
  const role = roleOf(settings);
  log.info({ role, nats: withoutPassword(settings.natsUrl ?? "") }, "joining a fleet");
  const connection = new FleetConnection(settings, log);
  const open = (definition: ModelDefinition): ServedModel => {
    const own = { ...settings, ...definition.settings };
    if (role === "gateway") return new FleetModel(definition, own, { connection, log });
    const local = fedModel(definition, own, connection, log);
    return role === "worker" ? local : new FleetModel(definition, own, { connection, log, local });
  };
  const learn = role === "gateway" ? announcedModels(connection, log) : undefined;
  return { models: new Models(models, settings, open, learn), leave: () => connection.close() };
}

/** A model here, fed from the queue from the moment that it is ready. */
function fedModel(
  definition: ModelDefinition,
  settings: Settings,
  connection: FleetConnection,
  log: FleetLog,
): LocalModel {
  const model = new LocalModel(definition, settings);
  const open = async (): Promise<NatsWorker> => {
    const queue = queueOf(definition.name, settings, { client: await connection.client, log });
    const { version } = definition;
    const serves = descriptionOf(definition);
    return natsWorker(model.traced, { ...queue, serves, version, isServing: () => model.ownState === "ready" });
  };
  model.takeFromQueue(open, () => `not connected to NATS: ${connection.unavailableReason}`);
  return model;
}
