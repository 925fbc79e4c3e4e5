export type { LaneFigures } from "../adapters/nats/queue/lane-figures.ts";
export type { NatsQueueOptions } from "../adapters/nats/queue/options.ts";
export type { WorkerInfo } from "../adapters/nats/queue/worker-registry.ts";
export type { NatsConnection, NatsMessage, NatsSubscription } from "../adapters/nats/wire/client.ts";
export type { WorkerBatcher, WorkerCounts } from "../adapters/nats/worker/worker.ts";
export { describeError, rebuildError, type WireError } from "../core/contract/wire-error.ts";
export { withInsideOf } from "../core/wrap-batcher.ts";
export { binaryCodec, encodedParts, type Codec } from "../shared/binary-codec.ts";
