import { BatcherError, type Batcher } from "../../index.ts";
import { type ItemError, itemErrorOf } from "./item-error.ts";
import { RequestError, replyOf, type Reply } from "./request-error.ts";
import { readRequest, type BatchRequest, type RawRequest } from "./request.ts";
import { complaintOn } from "./sound-item.ts";

export interface ResponderSettings<In> {
  readonly maxBodyBytes: number;
  readonly maxItems: number;
  readonly parse: (item: unknown) => In;
  readonly errorOf: (error: unknown) => ItemError;
  /** The longest deadline of an item, whatever its client asks for. */
  readonly timeoutMs: number;
}

/** From a request to its reply; undefined when the client has left. Never rejects. */
export type Responder = (request: RawRequest) => Promise<Reply | undefined>;

/** If every item ends with the same one of these, the request may be repeated later. */
const statusesOfLater = new Set([429, 503]);

export function responder<In, Out>(batcher: Batcher<In, Out>, settings: ResponderSettings<In>): Responder {
  return async (request) => {
    try {
      const results = await settleAll(batcher, await readRequest(request, settings), request.signal, settings);
      return request.signal.aborted ? undefined : replyTo(results);
    } catch (error) {
      if (request.signal.aborted) return undefined;
      return replyOf(error instanceof RequestError ? error : new RequestError(500, "INTERNAL", "The endpoint failed."));
    }
  };
}

/** The wait after a refusal that names none; a full queue names one once it knows how fast it drains. */
const unknownWaitMs = 1000;

type ItemResult = { readonly json: string } | { readonly error: ItemError };

/** Each item has its own deadline, priority, place in the queue and outcome. */
function settleAll<In, Out>(
  batcher: Batcher<In, Out>,
  { items, timeoutsMs, priorities }: BatchRequest,
  signal: AbortSignal,
  { parse, errorOf, timeoutMs }: ResponderSettings<In>,
): Promise<ItemResult[]> {
  const settleOne = async (raw: unknown, index: number): Promise<ItemResult> => {
    const complaint = complaintOn(raw);
    if (complaint !== undefined) return { error: { status: 422, code: "INVALID_INPUT", message: complaint } };
    let item: In;
    try {
      item = parse(raw);
    } catch (error) {
      return { error: { ...errorOf(error), status: 422, code: "INVALID_INPUT" } };
    }
    const limitMs = Math.min(timeoutsMs?.[index] ?? Infinity, timeoutMs);
    const priority = priorities?.[index] ?? undefined;
    try {
      const value = await batcher(item, { signal, priority, timeoutMs: limitMs === Infinity ? undefined : limitMs });
      return { json: JSON.stringify(value) ?? "null" };
    } catch (error) {
      // The batcher's messages reveal nothing about the function; the user decides about all others.
      return { error: error instanceof BatcherError ? itemErrorOf(error) : errorOf(error) };
    }
  };
  return Promise.all(items.map(settleOne));
}

function replyTo(results: readonly ItemResult[]): Reply {
  const refusal = refusalOf(results);
  if (refusal !== undefined) {
    const { status, code, message, retry_after_ms: asked } = refusal;
    const retryAfterMs = Math.ceil(asked ?? unknownWaitMs);
    return replyOf(
      new RequestError(status, code, message, {
        "retry-after": String(Math.ceil(retryAfterMs / 1000)),
        "retry-after-ms": String(retryAfterMs),
      }),
    );
  }
  const parts = results.map((each) => {
    if ("json" in each) return `{"status":200,"value":${each.json}}`;
    const { status, code, message, retry_after_ms: asked } = each.error;
    const retryAfterMs = asked ?? (status === 429 ? unknownWaitMs : undefined);
    return JSON.stringify({ status, error: { code, message, retry_after_ms: retryAfterMs } });
  });
  return {
    status: 200,
    headers: { "content-type": "application/json" },
    body: `{"results":[${parts.join(",")}]}`,
  };
}

/** If every item may be retried later for the same reason, the request is refused as a whole, with the longest wait. */
function refusalOf(results: readonly ItemResult[]): ItemError | undefined {
  let refusal: ItemError | undefined;
  for (const result of results) {
    if (!("error" in result)) return undefined;
    const { error } = result;
    if (!statusesOfLater.has(error.status) || error.status !== (refusal ?? error).status) return undefined;
    const isLonger = (error.retry_after_ms ?? 0) > (refusal?.retry_after_ms ?? 0);
    if (refusal === undefined || isLonger) refusal = error;
  }
  return refusal;
}
