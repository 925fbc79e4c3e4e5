import {
  check,
  checkFunction,
  checkOptions,
  checkText,
  isInteger,
  oneOf,
  withMethods,
  type Check,
} from "../../../shared/checks.ts";
import { systemClock, type Clock } from "../../../core/runtime/runtime.ts";
import { warn } from "../../../core/runtime/warnings.ts";
import { describe } from "../../../shared/describe.ts";
import { checkClock, priorities } from "../../../core/contract/settings.ts";
import type { Priority } from "../../../core/contract/options.ts";
import type { NatsClient } from "../wire/client.ts";
import { binaryCodec, type Codec } from "../../../shared/binary-codec.ts";

/** The options on which front ends and workers of one queue must agree. */
export interface NatsQueueOptions extends NatsClient {
  /** Names the queue; front ends and workers of one name meet. Any text of at most 100 characters. Required. */
  readonly queue: string;
  /**
   * `"file"`: an accepted item survives a restart of the NATS server. `"memory"`: it survives the loss of its worker
   * only. `"none"`: core NATS without JetStream, the cheapest; a crash or a cut connection loses its items.
   * @default "file"
   * @see replicas
   */
  readonly durability?: "file" | "memory" | "none" | undefined;
  /**
   * Most items per lane, waiting and running; one more is `QUEUE_FULL`. The front end's value counts.
   * @default 1000
   * @see maxQueueBytes
   */
  readonly maxQueueSize?: number | undefined;
  /**
   * Most bytes of the queue in the NATS server.
   * @default 1073741824, which is 1 GiB
   * @see maxQueueSize
   */
  readonly maxQueueBytes?: number | undefined;
  /**
   * Longest wait of an item, in milliseconds, whatever its deadline.
   * @default 60000
   */
  readonly maxAgeMs?: number | undefined;
  /**
   * The items of a worker that is silent for this long go to others, in milliseconds; at least 300.
   * @default 5000
   * @see maxDeliver
   */
  readonly ackWaitMs?: number | undefined;
  /**
   * Most deliveries of an item; after that it becomes a dead letter.
   * @default 5
   * @see ackWaitMs
   */
  readonly maxDeliver?: number | undefined;
  /**
   * Copies of the queue in a NATS cluster.
   * @default 1
   * @see durability
   */
  readonly replicas?: number | undefined;
  /**
   * The purpose of the queue, in any words. Workers refuse a front end's items (`UNAVAILABLE`) if both name a
   * purpose and the two differ.
   * @default none, which fits all
   * @example
   * natsWorker(batcher, { connection, headers, queue: "embed", serves: "all-MiniLM-L6-v2" });
   */
  readonly serves?: string | undefined;
  /**
   * Turns items and results into bytes and back.
   * @default binaryCodec
   */
  readonly codec?: Codec | undefined;
  /**
   * Gets warnings for the operator, such as a queue that the server refuses.
   * @default `console.warn`
   */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
  /**
   * Prefix of the subjects on which replies arrive; equal to the `inboxPrefix` of the connection.
   * @default "_INBOX"
   */
  readonly inboxPrefix?: string | undefined;
  /**
   * The source of time, for tests and simulations.
   * @default the system's clock
   */
  readonly clock?: Clock | undefined;
}

/** The options with their defaults. */
export type QueueSettings = {
  readonly [Name in keyof Omit<NatsQueueOptions, "onWarning">]-?: Name extends "serves"
    ? string | undefined
    : NonNullable<NatsQueueOptions[Name]>;
} & { readonly warn: NonNullable<NatsQueueOptions["onWarning"]> };

/** Highest first. */
export const lanes: readonly Priority[] = priorities;

const integerFrom =
  (least: number): Check =>
  (name, value) =>
    check(isInteger(value, least, Number.MAX_SAFE_INTEGER), name, `an integer >= ${least}`, value);

const queueChecks: Record<keyof NatsQueueOptions, Check> = {
  connection: () => undefined,
  headers: () => undefined,
  queue: () => undefined,
  durability: oneOf("file", "memory", "none"),
  maxQueueSize: integerFrom(1),
  maxQueueBytes: integerFrom(1024),
  maxAgeMs: integerFrom(1000),
  ackWaitMs: integerFrom(300),
  maxDeliver: integerFrom(1),
  replicas: integerFrom(1),
  serves: checkText,
  codec: withMethods("a codec, with encode() and decode()", "encode", "decode"),
  onWarning: checkFunction,
  inboxPrefix: checkText,
  clock: checkClock,
};

/**
 * `own`: the checks of a side's options beyond those of the queue.
 * @throws {TypeError | RangeError} naming the option and its value.
 */
export function queueSettings<Options extends NatsQueueOptions>(
  options: Options,
  own: Readonly<Record<Exclude<keyof Options, keyof NatsQueueOptions>, Check>>,
): QueueSettings {
  checkOptions(options, { ...queueChecks, ...own });
  const { connection, headers, queue, durability = "file", onWarning = warn } = options;
  if (typeof connection?.publish !== "function" || typeof connection.subscribe !== "function")
    throw new TypeError("connection must be a NATS connection: await connect() of @nats-io/transport-node");
  if (typeof headers !== "function") throw new TypeError("headers must be the function `headers` of the same package");
  const isText = typeof queue === "string" && queue !== "" && queue.length <= 100;
  check(isText, "queue", "a text of 1 to 100 characters", queue);
  const nameLength = tokenOf(queue).length;
  if (nameLength > longestToken)
    throw new RangeError(
      `queue must be a shorter text, or one with fewer characters beside letters, digits and -: ${describe(queue)} takes ${nameLength} characters in a stream's name, at most ${longestToken} are allowed`,
    );
  return {
    connection,
    headers,
    queue,
    durability,
    maxQueueSize: options.maxQueueSize ?? 1000,
    maxQueueBytes: options.maxQueueBytes ?? 2 ** 30,
    maxAgeMs: options.maxAgeMs ?? 60_000,
    ackWaitMs: options.ackWaitMs ?? 5000,
    maxDeliver: options.maxDeliver ?? 5,
    replicas: options.replicas ?? 1,
    serves: options.serves,
    codec: options.codec ?? binaryCodec,
    warn: (message, cause) => (cause === undefined ? onWarning(message) : onWarning(message, cause)),
    inboxPrefix: options.inboxPrefix ?? "_INBOX",
    clock: options.clock ?? systemClock,
  };
}

/** A stream's name becomes part of a folder name at the server, which has at most 255 characters. */
const longestToken = 200;

/** Letters, digits and - as they are, anything else as _ and its code: two queues never share a name. */
export const tokenOf = (queue: string): string =>
  queue.replaceAll(/[^A-Za-z0-9-]/gu, (char) => `_${char.codePointAt(0)!.toString(16)}_`);

/** Bytes of a message that NATS' own framing and headers may take. */
const headersBytes = 256;

/** Size of an item or a result with its head. */
export const largestMessageBytes = ({ connection }: QueueSettings): number =>
  (connection.info?.max_payload ?? Infinity) - headersBytes;

/** The JetStream domain of the server; a leaf node may have one of its own. Undefined where the server has no JetStream itself. */
export const domainOf = ({ connection: { info } }: QueueSettings): string | undefined =>
  info?.jetstream === true ? (info.domain ?? "") : undefined;

declare const crypto: { randomUUID(): string };

/** A subject of its own, under the prefix that the connection may subscribe to. */
export const newInbox = ({ inboxPrefix }: QueueSettings): string =>
  `${inboxPrefix}.${crypto.randomUUID().replaceAll("-", "")}`;
