export {
  expoPush,
  PushError,
  type ExpoClient,
  type ExpoPushOptions,
  type PushMessageLike,
  type PushTicket,
} from "./expo.ts";
export { multicast, type Addressed, type MulticastOptions } from "./multicast.ts";
