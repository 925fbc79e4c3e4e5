import { encodeHead, decodeHead, type Message } from "./message.ts";
import { transferable } from "./pack.ts";

/** A message between threads: the buffer alone, or with its large rows; an object around it would cost a clone. */
export type Posted = ArrayBuffer | readonly ArrayBuffer[];

interface Poster {
  postMessage(value: Posted, transfer: ArrayBuffer[]): void;
}

export function post(port: Poster, message: Message): void {
  const { packed, transfer } = transferable(encodeHead(message));
  port.postMessage(packed.large.length === 0 ? packed.buffer : transfer, transfer);
}

export function received(posted: Posted): Message {
  if (posted instanceof ArrayBuffer) return decodeHead({ buffer: posted, large: [] });
  const [buffer, ...large] = posted;
  return decodeHead({ buffer: buffer as ArrayBuffer, large: large.map((row) => new Uint8Array(row)) });
}
