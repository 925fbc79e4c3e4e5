import type { Message } from "./message.ts";
import { unpack, type RowOwnership } from "./pack.ts";

/** A message from a worker of any kind. */
export interface Received extends Pick<Message, "kind" | "id" | "value" | "memoryBytes"> {
  /**
   * `results`: one value or `Error` for each item; `answer`: that of the item; `failure` and `loadFailed`: the error. Read
   * once. @throws {Error} for a message that cannot be read.
   */
  values(ownership: RowOwnership): unknown[];
}

/** A message of a worker in JavaScript. */
export const receivedFrom = ({ kind, id, value, memoryBytes, packed }: Message): Received => ({
  kind,
  id,
  value,
  memoryBytes,
  values: (ownership) => (packed === undefined ? [] : unpack(packed, ownership)),
});
