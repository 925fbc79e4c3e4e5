import { describe } from "../../shared/describe.ts";
import { createBatcher, type BatchContext, type Batcher, type BatcherOptions, type Result } from "../../index.ts";

/** One message for one recipient. */
export interface Addressed<Message, Recipient = string> {
  readonly to: Recipient;
  readonly message: Message;
}

export type MulticastOptions<Message, Recipient, Out> = BatcherOptions<Addressed<Message, Recipient>, Out> & {
  /**
   * Messages of equal keys are one message.
   * @default the message as JSON
   * @example
   * multicast(send, { messageKey: ({ campaign }) => campaign });
   */
  readonly messageKey?: ((message: Message) => unknown) | undefined;
};

/**
 * For services that take one message and many recipients in a request: calls with equal messages, made at the same time,
 * share one. `send` gives one result or `Error` a recipient, in their order.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function multicast<Message, Out, Recipient = string>(
  send: (
    message: Message,
    recipients: Recipient[],
    context: BatchContext,
  ) => ArrayLike<Out | Error> | PromiseLike<ArrayLike<Out | Error>>,
  options: MulticastOptions<Message, Recipient, Out> = {},
): Batcher<Addressed<Message, Recipient>, Result<Out>> {
  const { messageKey = (message: Message) => JSON.stringify(message), groupKey, ...rest } = options;
  if (typeof send !== "function") throw new TypeError(`multicast needs a function, got ${describe(send)}`);
  if (groupKey !== undefined) throw new TypeError("multicast groups calls by message: set messageKey, not groupKey");
  return createBatcher<Addressed<Message, Recipient>, Out>(
    (calls, context) =>
      send(
        calls[0]!.message,
        calls.map(({ to }) => to),
        context,
      ),
    { ...rest, groupKey: ({ message }) => messageKey(message) },
  );
}
