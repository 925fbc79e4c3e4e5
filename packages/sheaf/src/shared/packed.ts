const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A message: what is said about its body, and the body. */
export interface Packed {
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: Uint8Array;
}

/** `[length u32][head as JSON][body]`. */
export function pack(head: object, body: Uint8Array): Uint8Array {
  const json = encoder.encode(JSON.stringify(head));
  const bytes = new Uint8Array(4 + json.byteLength + body.byteLength);
  new DataView(bytes.buffer).setUint32(0, json.byteLength, true);
  bytes.set(json, 4);
  bytes.set(body, 4 + json.byteLength);
  return bytes;
}

/** The body is a view. @throws {TypeError | RangeError | SyntaxError} if the bytes are not a packed message. */
export function unpack(bytes: Uint8Array): Packed {
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
  if (end > bytes.byteLength) throw new RangeError("The message is cut off.");
  return { head: recordOf(bytes.subarray(4, end)), body: bytes.subarray(end) };
}

/** A JSON object. @throws {TypeError | SyntaxError} for anything else. */
export function recordOf(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const value = JSON.parse(decoder.decode(bytes)) as unknown;
  if (typeof value !== "object" || value === null) throw new TypeError("It is not a JSON object.");
  return value as Record<string, unknown>;
}
