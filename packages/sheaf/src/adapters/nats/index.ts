export { natsFrontEnd, type NatsCallOptions, type NatsFrontEnd, type NatsFrontEndOptions } from "./front-end.ts";
export {
  natsWorker,
  type NatsWorker,
  type NatsWorkerOptions,
  type WorkerBatcher,
  type WorkerCounts,
} from "./worker.ts";
export { NatsQueueError, type NatsQueueErrorCode } from "./errors.ts";
export { binaryCodec, type Codec } from "./codec.ts";
export type { Answer } from "./answer.ts";
export type { LaneFigures } from "./figures.ts";
export type { WorkerInfo } from "./workers-seen.ts";
export type { NatsQueueOptions } from "./queue-options.ts";
export type { NatsClient, NatsConnection, NatsHeaders, NatsMessage, NatsSubscription } from "./client.ts";
