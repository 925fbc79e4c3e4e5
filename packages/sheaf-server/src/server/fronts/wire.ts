import type { Socket } from "node:net";
import type { WireError } from "sheaf/internal/nats";
import type { MetricFamily } from "sheaf/internal/metrics";
import type { ModelDefinition } from "../contract/model-definition.ts";

/** A model that takes items, as the hub describes it to fronts. */
export interface Announced {
  readonly name: string;
  /** Names this version of the model in calls; undefined while none takes requests. */
  readonly id?: number | undefined;
  /** What it takes and gives, without its functions. */
  readonly definition?: Omit<ModelDefinition, "run"> | undefined;
  /** Why its last load failed. */
  readonly failure?: string | undefined;
}

/** An item, or with `l` a list of items, for the model `m`. Short names, because it is part of every call. */
export interface CallHead {
  readonly i: number;
  readonly m: number;
  readonly l?: true | undefined;
  /** Milliseconds left. */
  readonly d?: number | undefined;
  readonly p?: string | undefined;
  /** The client's connection, by a number of the front. */
  readonly c: number;
  /** Trace context. */
  readonly t?: string | undefined;
  /** The names of the caller's key and tenant. */
  readonly k?: string | undefined;
  readonly u?: string | undefined;
}

/** Queue wait, run time and batch size of a result. */
export type Times = readonly [queueMs: number, runMs: number, batchSize: number];

/** The result of call `i`, or its error; of a list, one of each item in `o`. */
export interface ReplyHead {
  readonly i: number;
  readonly r?: Times | undefined;
  readonly o?: readonly (Times | WireError)[] | undefined;
  readonly e?: WireError | undefined;
  /** Items that were looked up in the cache, and those found. */
  readonly h?: readonly [items: number, hits: number] | undefined;
}

/** A lane of the model `m`. */
export interface Lane {
  readonly m: number;
  readonly isBulk: boolean;
}

/** What else a front sends. */
export interface FrontHead {
  /** First: its number. */
  readonly hello?: number | undefined;
  /** The client's connection with this number has closed. */
  readonly closed?: number | undefined;
  /** It follows this list of models. */
  readonly follows?: number | undefined;
  readonly ping?: true | undefined;
  /** How many requests it has refused in a lane that is full. */
  readonly refused?: (Lane & { readonly count: number }) | undefined;
  /** It finishes its last requests. */
  readonly draining?: true | undefined;
  readonly figures?: FrontFigures | undefined;
}

/** What else the hub sends. */
export interface HubHead {
  readonly models?: readonly Announced[] | undefined;
  /** The number of that list, and the models that the command line names. */
  readonly list?: number | undefined;
  readonly named?: readonly string[] | undefined;
  readonly pong?: true | undefined;
  /** A lane that has no room, with what a refusal says; or has room again. */
  readonly full?: (Lane & { readonly refusal?: Readonly<Record<string, number>> | undefined }) | undefined;
  readonly ask?: true | undefined;
}

/** Counts of a front since its start. */
export interface FrontFigures {
  readonly requests: readonly MetricFamily[];
  readonly process: readonly MetricFamily[];
}

const nothing = Buffer.alloc(0);
const noParts: readonly Uint8Array[] = [];
/** Bounds of the room that is made for messages before they come. */
const leastRoomBytes = 4096;
const mostRoomBytes = 256 * 1024;

/**
 * Messages over a socket, each `[length u32][length of the head u32][head as JSON][body]`. Those of one turn of the event loop go out
 * in one write.
 */
export class Messages {
  readonly #socket: Socket;
  readonly #onMessage: (head: object, body: Uint8Array) => void;
  /** The messages of this turn. */
  #out: Buffer = nothing;
  #outBytes = 0;
  /** Those of the turn before, about as many as this one will have. */
  #lastBytes = 0;
  /** Pieces of a message that is not complete. */
  #in: Buffer[] = [];
  #inBytes = 0;
  #neededBytes = 4;

  constructor(socket: Socket, onMessage: (head: object, body: Uint8Array) => void) {
    this.#socket = socket;
    this.#onMessage = onMessage;
    socket.on("data", (piece) => this.#read(piece));
  }

  /** Copies the parts of the body. */
  send(head: object, body: readonly Uint8Array[] = noParts): void {
    const json = JSON.stringify(head);
    const jsonBytes = Buffer.byteLength(json);
    const bytes = body.reduce((sum, part) => sum + part.length, 8 + jsonBytes);
    if (this.#outBytes === 0) setImmediate(() => this.#flush());
    if (this.#outBytes + bytes > this.#out.length) this.#grow(bytes);
    const out = this.#out;
    let at = out.writeUInt32LE(bytes - 4, this.#outBytes);
    at = out.writeUInt32LE(jsonBytes, at);
    at += out.write(json, at);
    for (const part of body) {
      out.set(part, at);
      at += part.length;
    }
    this.#outBytes = at;
  }

  #grow(bytes: number): void {
    const needed = this.#outBytes + bytes;
    const room = this.#outBytes === 0 ? Math.min(this.#lastBytes, mostRoomBytes) : 2 * needed;
    const out = Buffer.allocUnsafe(Math.max(needed, room, leastRoomBytes));
    this.#out.copy(out, 0, 0, this.#outBytes);
    this.#out = out;
  }

  #flush(): void {
    if (this.#socket.writable) this.#socket.write(this.#out.subarray(0, this.#outBytes));
    this.#lastBytes = this.#outBytes;
    const rest = this.#out.subarray(this.#outBytes);
    this.#out = rest.length > mostRoomBytes ? nothing : rest;
    this.#outBytes = 0;
  }

  #read(piece: Buffer): void {
    this.#in.push(piece);
    this.#inBytes += piece.length;
    if (this.#inBytes < this.#neededBytes) return;
    const bytes = this.#in.length === 1 ? piece : Buffer.concat(this.#in);
    let at = 0;
    const next = (): number => (bytes.length - at < 4 ? 4 : 4 + bytes.readUInt32LE(at));
    for (let length = next(); bytes.length - at >= length; length = next()) {
      const headAt = at + 8;
      const bodyAt = headAt + bytes.readUInt32LE(at + 4);
      at += length;
      this.#onMessage(JSON.parse(bytes.toString("utf8", headAt, bodyAt)) as object, bytes.subarray(bodyAt, at));
    }
    this.#in = at < bytes.length ? [bytes.subarray(at)] : [];
    this.#inBytes = bytes.length - at;
    this.#neededBytes = next();
  }
}
