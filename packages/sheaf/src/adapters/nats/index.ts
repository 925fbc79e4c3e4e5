export { natsFrontEnd, type NatsFrontEnd, type NatsFrontEndOptions } from "./front-end/front-end.ts";
export {
  natsWorker,
  type NatsWorker,
  type NatsWorkerOptions,
  type WorkerBatcher,
  type WorkerCounts,
} from "./worker/worker.ts";
export { NatsQueueError, type NatsQueueErrorCode } from "./wire/errors.ts";
export { binaryCodec, type Codec } from "./wire/codec.ts";
export type { NatsDetailedResult } from "./wire/detailed-result.ts";
export type { LaneFigures } from "./queue/lane-figures.ts";
export type { WorkerInfo } from "./queue/worker-registry.ts";
export type { NatsQueueOptions } from "./queue/options.ts";
export type { NatsClient, NatsConnection, NatsHeaders, NatsMessage, NatsSubscription } from "./wire/client.ts";
