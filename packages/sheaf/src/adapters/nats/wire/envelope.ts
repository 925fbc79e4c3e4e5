import { isWireError, type WireError } from "../../../core/contract/wire-error.ts";
import { unpack } from "../../../shared/packed.ts";

/** The head before an item. Short names: it is part of every message. */
export interface RequestHead {
  /** Inbox of the front end. */
  readonly f: string;
  /** The front end's number of the call. */
  readonly i: string;
  /** Milliseconds left when it was published. */
  readonly d: number;
  /** W3C trace context. */
  readonly t?: string | undefined;
}

/** The head before a result. */
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
  /** Where the front end confirms it. In here, because servers refuse such a subject as a message's reply. */
  readonly a?: string | undefined;
  /** Its batch goes on, so `m` and `s` are not the batch's: it was answered early, or by a run of a part. */
  readonly p?: true | undefined;
  readonly e?: WireError | undefined;
}

export interface Request {
  readonly head: RequestHead;
  readonly body: Uint8Array;
}

export interface Reply {
  readonly head: ReplyHead;
  readonly body: Uint8Array;
}

/**
 * An item as its front end sent it. @throws {TypeError | RangeError} when the bytes are not a message of a front end.
 */
export function requestOf(bytes: Uint8Array): Request {
  const { head, body } = unpack(bytes);
  const { f, i, d, t } = head;
  // A forged subject could name any subject, or one that cannot be published to.
  if (!isSubject(f) || typeof i !== "string" || !/^[\da-z]{1,20}$/.test(i) || !isMs(d))
    throw new TypeError("It is not an item from a front end.");
  return { head: { f, i, d, t: textOf(t) }, body };
}

/** A worker's answer. @throws {TypeError | RangeError} when the bytes are not a message of a worker. */
export function replyOf(bytes: Uint8Array): Reply {
  const { head, body } = unpack(bytes);
  const { n, b, w, m, s, c, a, e } = head;
  const counts = [n, b, c].every((count) => Number.isSafeInteger(count) && (count as number) >= 0);
  const texts = typeof w === "string" && typeof s === "string" && (a === undefined || isSubject(a));
  if (!counts || !texts || (e !== undefined && !isWireError(e)))
    throw new TypeError("It is not a reply from a worker.");
  // An executor that measures its own runs may have measured nothing.
  return { head: (isMs(m) ? head : { ...head, m: 0 }) as unknown as ReplyHead, body };
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** Whether a subject can be published to. */
const isSubject = (value: unknown): value is string =>
  typeof value === "string" && value.length <= 1000 && /^[^\s.*>]+(\.[^\s.*>]+)*$/.test(value);

/** A span of time that a timer can take, unlike 1e300. */
const isMs = (value: unknown): value is number => typeof value === "number" && value >= 0 && value <= 1e15;

/** Names the call in the whole fleet: the front end's inbox ends in a token of its own. */
export const keyOf = ({ f, i }: Pick<RequestHead, "f" | "i">): string => `${f.slice(f.lastIndexOf(".") + 1)}-${i}`;
/**
 * Subjects of the front end: `a` acknowledgement of the publish, `r` result, `q` does the caller still wait, `h` a worker
 * hands the item back.
 */
export const ackSubject = (inbox: string, id: string): string => `${inbox}.a${id}`;
export const replySubject = ({ f, i }: RequestHead): string => `${f}.r${i}`;
export const questionSubject = ({ f, i }: RequestHead): string => `${f}.q${i}`;
export const handBackSubject = ({ f, i }: RequestHead): string => `${f}.h${i}`;
