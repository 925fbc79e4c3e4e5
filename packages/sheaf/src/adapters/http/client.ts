import { batcherChecks } from "../../core/contract/settings.ts";
import { check, checkFunction, checkOptions, checkShare, integerFrom, type Check } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";
import { systemClock } from "../../core/runtime/runtime.ts";
import { wrapBatcher } from "../../core/wrap-batcher.ts";
import {
  createBatcher,
  type BatchContext,
  type Batcher,
  type BatcherOptions,
  type CallOptions,
  type Result,
} from "../../index.ts";
import { withRetries } from "../api-client/retries.ts";
import { defined } from "../../shared/defined.ts";
import { utf8Bytes } from "../shared/utf8-bytes.ts";
import { NotUtf8, replyText, TooLarge } from "../shared/bounded-text.ts";
import { badReply, connectionErrorOf } from "./http-error.ts";
import { errorOfReply, resultsOf } from "./reply.ts";
import { bytesAroundItem, bytesAroundItems, isPriority, requestBody, type WireItem } from "./wire.ts";

export interface BatchClientOptions<In, Out> extends Omit<
  BatcherOptions<In, Out>,
  | "maxBatchSize"
  | "runTimeoutMs"
  | "weigh"
  | "maxBatchWeight"
  | "maxItemWeight"
  | "batchWeight"
  | "runOne"
  | "resultKey"
  | "onMissing"
> {
  /**
   * Most items in a request; integer >= 1.
   * @default 100
   * @see maxBodyBytes
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Maximum duration of a request, in milliseconds; a longer one is abandoned with `RUN_TIMEOUT`.
   * @default 30000
   * @see timeoutMs
   */
  readonly runTimeoutMs?: number | undefined;
  /**
   * Sends the requests.
   * @default the runtime's own `fetch`
   */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /**
   * Sent with every request; a function is called for each request.
   * @default none
   * @example
   * batchClient(url, { headers: async () => ({ authorization: `Bearer ${await token()}` }) });
   */
  readonly headers?:
    | Readonly<Record<string, string>>
    | (() => Readonly<Record<string, string>> | PromiseLike<Readonly<Record<string, string>>>)
    | undefined;
  /**
   * Maximum bytes of a request.
   * @default 1048576, which is 1 MiB, as at the endpoint
   * @see EndpointOptions.maxBodyBytes
   */
  readonly maxBodyBytes?: number | undefined;
  /**
   * Maximum bytes of a reply.
   * @default 16777216, which is 16 MiB
   */
  readonly maxReplyBytes?: number | undefined;
  /**
   * Retries of a batch that was refused as a whole with 429, each after the pause that the endpoint asks for; integer >= 0.
   * @default 2
   * @see retryBudget
   */
  readonly maxRetries?: number | undefined;
  /**
   * Retries earned by each successful request, on top of 10 at the start; > 0 and <= 1.
   * @default 0.2
   * @see maxRetries
   */
  readonly retryBudget?: number | undefined;
  /**
   * Checks and types a value of the reply; an error that it throws rejects that caller.
   * @default the value as it is
   * @example
   * batchClient(url, { parse: (value) => vectorSchema.parse(value) });
   */
  readonly parse?: ((value: unknown) => Out) | undefined;
}

const clientDefaults = {
  maxBatchSize: 100,
  runTimeoutMs: 30_000,
  maxBodyBytes: 2 ** 20,
  maxReplyBytes: 2 ** 24,
  maxRetries: 2,
};

const checkBytes: Check = (name, value) =>
  check(typeof value === "number" && value >= 1024, name, "a number of bytes >= 1024", value);

const clientChecks: Record<string, Check> = {
  fetch: checkFunction,
  headers: () => undefined,
  maxBodyBytes: checkBytes,
  maxReplyBytes: checkBytes,
  maxRetries: integerFrom(0),
  retryBudget: checkShare,
  parse: checkFunction,
  ...batcherChecks,
} satisfies Record<keyof BatchClientOptions<unknown, unknown>, Check>;

/** An item and the options of its call that travel with it. */
interface Envelope<In> {
  readonly item: In;
  readonly json: string;
  readonly deadlineAtMs: number;
  readonly priority: CallOptions["priority"];
}

/**
 * A batcher whose batches are requests to a batch endpoint. Each item, with its deadline and priority, is answered on
 * its own; a `Retry-After` of the whole request pauses this client, one of an item is that caller's. A request that 429
 * refuses goes again, since none of it ran. Nothing else is sent twice: a failed item is the caller's to repeat.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function batchClient<In, Out>(
  url: string | URL,
  options: BatchClientOptions<In, Out> = {},
): Batcher<In, Result<Out>> {
  checkOptions(options, clientChecks);
  const settings = { ...clientDefaults, ...defined(options) };
  const { fetch: send, headers, maxBodyBytes, maxReplyBytes, parse, maxRetries, retryBudget, ...own } = settings;
  const { groupKey, fairKey, orderKey, dedupeKey, ...rest } = own;
  const target = new URL(url).href;
  const clock = options.clock ?? systemClock;

  const run = async (envelopes: readonly Envelope<In>[], { signal }: BatchContext): Promise<(Out | Error)[]> => {
    const nowMs = clock.now();
    const body = requestBody(envelopes.map((envelope) => wireItemOf(envelope, nowMs, dedupeKey === undefined)));
    const sent = typeof headers === "function" ? await headers() : headers;
    const request: RequestInit = {
      method: "POST",
      headers: { ...sent, "content-type": "application/json", accept: "application/json" },
      body,
      signal,
      // Followed, it would take keys to another address, and a POST may arrive there as a GET.
      redirect: "manual",
    };
    const { response, text } = await exchange(send ?? fetch, target, request, maxReplyBytes);
    if (response.status !== 200) throw errorOfReply(response, text);
    return resultsOf<Out>(text, parse);
  };

  const keyed =
    <Key>(key: ((item: In) => Key) | undefined) =>
    (envelope: Envelope<In>): Key =>
      key!(envelope.item);
  const retries = { maxRetries, after: "refused", budget: retryBudget, clock } as const;
  const batcher = createBatcher<Envelope<In>, Out>(withRetries(run, retries), {
    ...rest,
    maxBatchWeight: maxBodyBytes - bytesAroundItems,
    maxItemWeight: maxBodyBytes - bytesAroundItems,
    weigh: ({ json }) => utf8Bytes(json) + bytesAroundItem,
    groupKey: groupKey && keyed(groupKey),
    fairKey: fairKey && keyed(fairKey),
    orderKey: orderKey && keyed(orderKey),
    dedupeKey: dedupeKey && keyed(dedupeKey),
  });

  const envelopeOf = (item: In, { timeoutMs = rest.timeoutMs, priority }: CallOptions = {}): Envelope<In> => {
    const json = JSON.stringify(item) as string | undefined;
    if (json === undefined) throw new TypeError(`an item must be JSON, got ${describe(item)}`);
    return { item, json, deadlineAtMs: timeoutMs === undefined ? Infinity : clock.now() + timeoutMs, priority };
  };
  return wrapBatcher<In, Envelope<In>, Result<Out>>(batcher, { item: envelopeOf });
}

/** A shared slot (dedupeKey) has several callers: one caller's deadline must not end the others' wait. */
function wireItemOf<In>(envelope: Envelope<In>, nowMs: number, sendsDeadline: boolean): WireItem {
  const { json, deadlineAtMs, priority } = envelope;
  const hasDeadline = sendsDeadline && deadlineAtMs !== Infinity;
  return {
    json,
    timeoutMs: hasDeadline ? Math.max(1, Math.ceil(deadlineAtMs - nowMs)) : undefined,
    priority: isPriority(priority) && priority !== "interactive" ? priority : undefined,
  };
}

async function exchange(
  send: NonNullable<BatchClientOptions<unknown, unknown>["fetch"]>,
  target: string,
  request: RequestInit,
  maxReply: number,
): Promise<{ readonly response: Response; readonly text: string }> {
  try {
    const response = await send(target, request);
    return { response, text: await replyText(response, maxReply) };
  } catch (error) {
    if (error instanceof NotUtf8) throw badReply("The endpoint's reply is not UTF-8.");
    if (!(error instanceof TooLarge)) throw connectionErrorOf(target, error);
    throw badReply(`The endpoint's reply is larger than ${maxReply} bytes (maxReplyBytes).`);
  }
}
