export { natsFrontEnd, type NatsFrontEnd, type NatsFrontEndOptions } from "./front-end/front-end.ts";
export { natsWorker, type NatsWorker, type NatsWorkerOptions } from "./worker/worker.ts";
export { NatsQueueError } from "./wire/errors.ts";
export type { NatsDetailedResult } from "./wire/detailed-result.ts";
