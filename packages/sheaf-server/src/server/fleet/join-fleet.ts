import type { CallOptions } from "sheaf";
import { natsFrontEnd } from "sheaf/adapters/nats";
import { binaryCodec, type Codec } from "sheaf/internal/nats";
import { forBatcher, type InferOptions } from "../../http/call-options.ts";
import type { RecordFile } from "../../observe/record-file.ts";
import { queueTraces } from "../../observe/tracing.ts";
import { roleOf } from "../../settings/role.ts";
import type { Settings } from "../../settings/settings.ts";
import type { ModelDefinition } from "../contract/model-definition.ts";
import type { ModelSource } from "../models/deployment.ts";
import { refuseLate } from "../models/local-batcher.ts";
import { Models } from "../models/models.ts";
import type { KeptResults } from "../../cache/kept-results.ts";
import { cacheOpener } from "../models/open-cache.ts";
import { batchSizeOf, ServedModel } from "../models/served-model.ts";
import { turnKeys, type Tenanted } from "../models/tenanted.ts";
import { announcedModels } from "./announced-model.ts";
import { masked } from "../../shared/masked.ts";
import { FleetConnection } from "./connection.ts";
import type { FleetLog } from "./fleet-log.ts";
import { GatewayPart } from "./gateway-part.ts";
import { descriptionOf, queueOf } from "./queue.ts";
import { tagOf } from "./sender-tag.ts";
import { senderOf } from "../../tenants/accounts.ts";
import { hasTenants } from "../../tenants/callers.ts";
import { WorkerPart } from "./worker-part.ts";

export interface Fleet {
  readonly models: Models;
  /** Call it after the models are closed. */
  leave(): Promise<void>;
}

/** Items go to the workers without their tenants. */
const tenantedCodec: Codec = {
  encode: (held) => binaryCodec.encode((held as Tenanted).item),
  decode: binaryCodec.decode,
};

/** Opens a server's models for its role in a fleet: a gateway calls them, a worker runs them, `all` does both. */
export function joinFleet(
  models: readonly (ModelDefinition | ModelSource)[],
  settings: Settings,
  log: FleetLog,
  onDisk?: KeptResults,
  record?: RecordFile,
): Fleet {
  const role = roleOf(settings);
  log.info({ role, nats: masked(settings.natsUrl ?? "") }, "joining a fleet");
  const isTenanted = hasTenants(settings);
  const connection = new FleetConnection(settings, log);
  const openCache = cacheOpener(settings, onDisk);
  const traceOf = queueTraces();

  const openWorker = (definition: ModelDefinition, own: Settings): ServedModel => {
    const model = new ServedModel(definition, own);
    model.join(new WorkerPart(model, connection, queueOf(definition.name, own, connection, log)));
    return model;
  };
  const openGateway = (definition: ModelDefinition, own: Settings, local?: ServedModel): ServedModel => {
    const { name } = definition;
    const frontEnd = natsFrontEnd<unknown, unknown>({
      ...queueOf(name, own, connection, log),
      ...(isTenanted ? { ...turnKeys, codec: tenantedCodec } : {}),
      serves: descriptionOf(definition),
      timeoutMs: own.requestTimeoutMs,
      holdMs: own.natsHoldMs,
      refuseLate,
      maxBatchSize: batchSizeOf(definition, own),
      name,
    });
    const cache = openCache(definition, own, () => frontEnd.workers()[0]?.route);
    const callOf = (options: InferOptions): CallOptions => ({
      ...forBatcher(options),
      tag: tagOf(senderOf(options), traceOf(options.tag)),
    });
    const model = new ServedModel(definition, own, { batcher: frontEnd, isTenanted, callOf, cache, local, record });
    model.join(new GatewayPart(frontEnd, connection, own.natsHoldMs));
    return model;
  };
  const open = (definition: ModelDefinition): ServedModel => {
    const own = { ...settings, ...definition.settings };
    if (role === "gateway") return openGateway(definition, own);
    const local = openWorker(definition, own);
    return role === "worker" ? local : openGateway(definition, own, local);
  };
  const learn = role === "gateway" ? announcedModels(connection, log) : undefined;
  return { models: new Models(models, settings, open, learn), leave: () => connection.close() };
}
