import type { FastifyReply } from "fastify";
import { accountOf, threadTurns } from "../../http/thread-turns.ts";
import { clientClosedRequest, Problem } from "../../problems/problem.ts";
import type { Settings } from "../../settings/settings.ts";
import { costs } from "../../shared/costs.ts";
import { jsonBytes, jsonBytesOf, mostJsonBytes, type JsonParts } from "../codec/json-bytes.ts";

type ReplySettings = Pick<Settings, "maxReplyBytes">;

/** Sends JSON. @throws {Problem} as `jsonInTurns` */
export async function sendJson(reply: FastifyReply, parts: JsonParts, settings: ReplySettings): Promise<FastifyReply> {
  const json = await jsonInTurns(reply, parts, settings);
  return reply.type("application/json").send(json);
}

/**
 * The bytes of a reply's JSON. A large reply is made in pieces, each in one of the caller's turns.
 * @throws {Problem} 422 for more than MAX_REPLY_BYTES.
 */
export async function jsonInTurns(
  { request, raw }: FastifyReply,
  parts: JsonParts,
  settings: ReplySettings,
): Promise<Buffer> {
  const most = mostJsonBytes(parts);
  if (most < costs.pieceBytes && most <= settings.maxReplyBytes) return jsonBytes(parts as readonly string[]);
  const account = accountOf(request);
  const writing = jsonBytesOf(parts);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const { value } = await threadTurns.run(account, () => writing.next());
    if (value === undefined) return Buffer.concat(pieces, bytes);
    if (raw.destroyed) throw clientClosedRequest();
    checkReplyBytes((bytes += value.length), settings);
    pieces.push(value);
  }
}

/** @throws {Problem} 422 for more than MAX_REPLY_BYTES. */
export function checkReplyBytes(bytes: number, { maxReplyBytes }: ReplySettings): void {
  if (bytes <= maxReplyBytes) return;
  const message = `The reply would be larger than ${maxReplyBytes} bytes (MAX_REPLY_BYTES). Send fewer inputs.`;
  throw new Problem("INVALID_INPUT", message);
}
