export { batchClient, type BatchClientOptions } from "./client.ts";
export {
  batchEndpoint,
  itemEndpoint,
  type BatchEndpointOptions,
  type Endpoint,
  type EndpointOptions,
  type ItemEndpointOptions,
} from "./endpoint.ts";
export type { FastifyLike, FastifyReplyLike, FastifyRequestLike } from "./fastify.ts";
export { ConnectionError, HttpError } from "./http-error.ts";
export { priorities } from "../../core/contract/settings.ts";
export { httpStatusOf, type ItemError } from "./item-error.ts";
export type { WireError } from "./wire.ts";
