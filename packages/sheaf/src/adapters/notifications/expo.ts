import { describe } from "../../shared/describe.ts";
import { createBatcher, type Batcher, type BatcherOptions, type RateLimit } from "../../index.ts";
import { blamesInputs, withHints } from "../api-client/api-error.ts";

/** A message as expo-server-sdk takes it; one recipient each. */
export interface PushMessageLike {
  readonly to: string | readonly string[];
}

export type PushTicketLike =
  | { readonly status: "ok"; readonly id: string }
  | {
      readonly status: "error";
      readonly message: string;
      readonly details?:
        { readonly error?: string | undefined; readonly expoPushToken?: string | undefined } | undefined;
    };

export interface ExpoClient<Message extends PushMessageLike> {
  sendPushNotificationsAsync(messages: Message[]): Promise<PushTicketLike[]>;
}

/** A ticket means that Expo took the message: ask for its receipt later. */
export interface PushTicket {
  readonly status: "ok";
  readonly id: string;
}

/** Expo did not take a message. With `DeviceNotRegistered` forget the token. */
export class PushError extends Error {
  override readonly name = "PushError";
  /** Expo's code: `DeviceNotRegistered`, `MessageTooBig`, `MessageRateExceeded` …; `PUSH_FAILED` where it gave none. */
  readonly code: string;
  readonly to: string;

  constructor(code: string, message: string, to: string) {
    super(message);
    this.code = code;
    this.to = to;
  }
}

/** Expo takes 100 messages a request and 600 a second a project; its client sends six requests at once. */
export const expoDefaults = { maxBatchSize: 100, concurrency: 6, rateLimit: { items: 600, perMs: 1000 } } as const;

/** Options of `expoPush`: those of a batcher, three of them with Expo's limits as defaults. */
export interface ExpoPushOptions<Message> extends Omit<
  BatcherOptions<Message, PushTicket>,
  "maxBatchSize" | "concurrency" | "rateLimit" | "onBatchError" | "shouldBisect" | "maxBisectRuns" | "runOne"
> {
  /**
   * Most messages in a request; at most 100, Expo's limit.
   * @default 100
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Most requests in flight; integer >= 1.
   * @default 6
   */
  readonly concurrency?: number | undefined;
  /**
   * Limits the messages to a rate; Expo takes 600 a second from a project.
   * @default { items: 600, perMs: 1000 }
   */
  readonly rateLimit?: RateLimit | readonly RateLimit[] | undefined;
}

/**
 * One push message in, its ticket out; up to 100 share a request. A message that Expo refuses rejects with `PushError`,
 * its neighbours have their tickets. A request that is refused for its content (400, 413, 422) has sent nothing and is
 * halved until the bad message stands alone; nothing else is sent twice by this adapter.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function expoPush<Message extends PushMessageLike>(
  client: ExpoClient<Message>,
  options: ExpoPushOptions<Message> = {},
): Batcher<Message, PushTicket> {
  if (typeof (client as Partial<ExpoClient<Message>> | null)?.sendPushNotificationsAsync !== "function") {
    throw new TypeError(`expoPush needs a client with sendPushNotificationsAsync(messages), got ${describe(client)}`);
  }
  const { maxBatchSize = expoDefaults.maxBatchSize, concurrency, rateLimit, groupKey, ...rest } = options;
  if (maxBatchSize > expoDefaults.maxBatchSize) {
    throw new RangeError(`Expo accepts at most 100 messages per request: maxBatchSize is ${maxBatchSize}`);
  }
  const run = async (messages: Message[]): Promise<(PushTicket | Error)[]> => {
    let tickets: readonly PushTicketLike[];
    try {
      tickets = await client.sendPushNotificationsAsync(messages);
    } catch (error) {
      throw withHints(error);
    }
    // They are sent, and their outcome is unknown: no reason to send them again.
    if (!Array.isArray(tickets))
      throw new TypeError(`Expo's client must return an array of tickets, got ${describe(tickets)}`);
    return tickets.map((ticket, i) => (ticket?.status === "ok" ? ticket : errorOf(ticket, messages[i])));
  };
  return createBatcher<Message, PushTicket>(run, {
    ...rest,
    maxBatchSize,
    concurrency: concurrency ?? expoDefaults.concurrency,
    rateLimit: rateLimit ?? expoDefaults.rateLimit,
    onBatchError: "bisect",
    shouldBisect: blamesInputs,
    groupKey: (message) => {
      // A throw here fails this call only, before anything is sent.
      checkRecipient(message);
      return groupKey?.(message);
    },
  });
}

function checkRecipient(message: PushMessageLike): void {
  const { to } = (message ?? {}) as Partial<PushMessageLike>;
  if (typeof to === "string" && to !== "") return;
  throw new TypeError(
    `a message has one recipient, a push token in "to"; got ${describe(to)}. Call once for each token.`,
  );
}

function errorOf(ticket: Partial<PushTicketLike & { status: "error" }> | null, message?: PushMessageLike): PushError {
  const { message: text = "Expo gave no ticket for the message.", details } = ticket ?? {};
  return new PushError(details?.error ?? "PUSH_FAILED", text, String(message?.to ?? ""));
}
