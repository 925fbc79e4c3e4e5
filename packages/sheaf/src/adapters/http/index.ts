export { batchClient, type BatchClientOptions } from "./client.ts";
export {
  batchEndpoint,
  itemEndpoint,
  type BatchEndpointOptions,
  type Endpoint,
  type ItemEndpointOptions,
} from "./endpoint.ts";
export { ConnectionError, HttpError } from "./http-error.ts";
export { type ItemError } from "./item-error.ts";
