import type { Readable } from "node:stream";
import type { Priority } from "sheaf";

/** A request to a language model: its bytes, and what is read of them. */
export interface ModelRequest {
  readonly model: string;
  /** Undefined where it is not JSON, or larger than MAX_BODY_BYTES. */
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly bytes: Buffer;
  /** What follows the bytes of one that is larger. */
  readonly rest: AsyncIterable<Buffer> | undefined;
  readonly length: number;
  /** The client has not asked for the usage of its stream, which the upstream is asked for. */
  readonly addsUsage: boolean;
  /** `service_tier: "flex"` is a price for answers that may be late. */
  readonly priority: Priority | undefined;
  readonly user: unknown;
}

/** Bounds a model's name, which is kept as long as its limit. */
const longestModel = 512;
const piecesOfBlock = 1024;

/** Reads at most `most` bytes of a body; what is more goes upstream as it comes. */
export async function readModelRequest(
  body: Readable,
  announced: number,
  most: number,
  path: string,
): Promise<ModelRequest> {
  const blocks: Buffer[] = [];
  const pieces: Buffer[] = [];
  let length = 0;
  let rest: AsyncIterable<Buffer> | undefined;
  const iterator = body.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
    pieces.push(next.value);
    length += next.value.length;
    // A Buffer of a byte costs 500.
    if (pieces.length === piecesOfBlock) blocks.push(Buffer.concat(pieces.splice(0)));
    if (length <= most) continue;
    rest = iterator;
    break;
  }
  const bytes = Buffer.concat([...blocks, ...pieces]);
  const params = rest === undefined ? objectIn(bytes) : undefined;
  // Of a long body the model usually stands at the beginning.
  const named = params?.["model"] ?? /"model"\s*:\s*"([^"\\]{1,512})"/.exec(bytes.toString())?.[1];
  const options = params?.["stream_options"] as { readonly include_usage?: unknown } | null | undefined;
  const isChatStream = path === "/v1/chat/completions" && params?.["stream"] === true;
  const addsUsage = isChatStream && options?.include_usage !== true;
  const { user, metadata, service_tier: tier } = params ?? {};
  const sent = addsUsage ? withUsage(bytes, params) : bytes;
  return {
    model: typeof named === "string" && named.length <= longestModel ? named : "",
    params,
    bytes: sent,
    rest,
    length: rest === undefined ? sent.length : Math.max(announced, length),
    addsUsage,
    priority: tier === "flex" ? "bulk" : undefined,
    user: user ?? (metadata as { readonly user_id?: unknown } | null | undefined)?.user_id,
  };
}

/** The same body with `stream_options.include_usage`; every other byte stays if it had no `stream_options`. */
function withUsage(bytes: Buffer, params: Readonly<Record<string, unknown>>): Buffer {
  const options = { ...(params["stream_options"] as object | undefined), include_usage: true };
  if ("stream_options" in params) return Buffer.from(JSON.stringify({ ...params, stream_options: options }));
  const at = bytes.indexOf("{") + 1;
  const field = Buffer.from(`"stream_options":${JSON.stringify(options)},`);
  return Buffer.concat([bytes.subarray(0, at), field, bytes.subarray(at)]);
}

function objectIn(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const json = JSON.parse(bytes.toString()) as unknown;
    return typeof json === "object" && json !== null && !Array.isArray(json)
      ? (json as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
