import type { WireError } from "./errors.ts";

/** What travels before an item. Short names: it is part of every message. */
export interface RequestHead {
  /** Inbox of the front end that waits. */
  readonly f: string;
  /** The front end's number of the call. */
  readonly i: string;
  /** Milliseconds that were left when it was published. */
  readonly d: number;
  /** W3C trace context. */
  readonly t?: string | undefined;
}

/** What travels before a result. */
export interface ReplyHead {
  /** Items in its batch, and the batch's number at that worker. */
  readonly n: number;
  readonly b: number;
  /** The worker. */
  readonly w: string;
  /** Dispatch → results, in milliseconds. */
  readonly m: number;
  /** Why the batch went. */
  readonly s: string;
  /** Which delivery this was; 1 unless something went wrong. */
  readonly c: number;
  /** Where the front end says that it has it. In here: servers refuse such a subject as a message's reply. */
  readonly a?: string | undefined;
  readonly e?: WireError | undefined;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** `[length u32][head as JSON][body]`. */
export function pack(head: RequestHead | ReplyHead, body: Uint8Array): Uint8Array {
  const json = encoder.encode(JSON.stringify(head));
  const bytes = new Uint8Array(4 + json.byteLength + body.byteLength);
  new DataView(bytes.buffer).setUint32(0, json.byteLength, true);
  bytes.set(json, 4);
  bytes.set(body, 4 + json.byteLength);
  return bytes;
}

/** @throws {Error} when the bytes are no such message. */
export function unpack<Head>(bytes: Uint8Array): { readonly head: Head; readonly body: Uint8Array } {
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
  if (end > bytes.byteLength) throw new RangeError("The message is cut off.");
  return { head: JSON.parse(decoder.decode(bytes.subarray(4, end))) as Head, body: bytes.subarray(end) };
}

/** Names the call in the whole fleet: the front end's inbox ends in a token of its own. */
export const keyOf = ({ f, i }: RequestHead): string => `${f.slice(f.lastIndexOf(".") + 1)}-${i}`;
/** Where the front end hears: `a` of the publish, `r` a result, `q` the question whether anybody still waits. */
export const ackSubject = (inbox: string, id: string): string => `${inbox}.a${id}`;
export const replySubject = ({ f, i }: RequestHead): string => `${f}.r${i}`;
export const questionSubject = ({ f, i }: RequestHead): string => `${f}.q${i}`;
