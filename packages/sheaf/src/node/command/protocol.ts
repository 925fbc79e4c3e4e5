import type { Socket } from "node:net";
import { describe } from "../../shared/describe.ts";
import type { Received } from "../wire/received.ts";
import { Kind } from "../wire/message.ts";
import type { Declared } from "./declared.ts";
import type { WorkerDeclaration } from "./declaration.ts";
import { encodeItems } from "./encode.ts";
import { FrameReader, writeFrame, type Frame } from "./frame.ts";
import { OpenItems } from "./open-items.ts";
import type { WorkerLogLine } from "./options.ts";
import { workerError } from "./worker-error.ts";

const version = 1;
const levels = ["debug", "info", "warning", "error"] as const;
const longestLog = 8192;

export interface ProtocolEvents {
  message(received: Received): void;
  log(level: WorkerLogLine["level"], text: string): void;
  /** The worker violated the protocol, or differs from the workers before it. */
  broken(error: Error): void;
  /** It has unloaded; its end follows. */
  closed(): void;
}

/** Our side of the worker protocol over one pipe: the order of messages, and the allowed replies. */
export class CommandProtocol {
  readonly #pipe: Socket | undefined;
  readonly #declared: Declared;
  readonly #events: ProtocolEvents;
  /** The batches that it has, in the order of their results. */
  readonly #outstanding: { readonly id: number; readonly open: OpenItems }[] = [];
  readonly #reader: FrameReader = new FrameReader((frame) => this.#receive(frame));
  #declaration: WorkerDeclaration | undefined;
  #isSilent = true;
  #isBroken = false;

  constructor(pipe: Socket | undefined, declared: Declared, events: ProtocolEvents) {
    this.#pipe = pipe;
    this.#declared = declared;
    this.#events = events;
    pipe?.on("data", (chunk: Buffer) => {
      if (this.#isBroken) return;
      try {
        this.#reader.push(chunk);
      } catch (error) {
        this.#break((error as Error).message);
      }
    });
    pipe?.on("end", () => {
      if (this.#reader.isInside && !this.#isBroken) this.#break("the end of the pipe in the middle of a message");
    });
    // A write to a process that has just died; its exit says why.
    pipe?.on("error", () => undefined);
  }

  /** Appended to the reason if it ended without having sent anything. */
  get silence(): string {
    return this.#isSilent ? " before it sent anything (does it call serve()?)" : "";
  }

  hello(data: unknown): void {
    this.#send({ type: "hello", protocol: version, data: data ?? null });
  }

  run(id: number, attempt: number, items: readonly unknown[]): void {
    const { columns, pieces } = encodeItems(this.#declaration!.inputs, items);
    this.#send({ type: "run", id, size: items.length, attempt, columns }, pieces);
    this.#outstanding.push({ id, open: new OpenItems(items.length) });
  }

  cancel(id: number): void {
    this.#send({ type: "cancel", id });
  }

  close(): void {
    this.#send({ type: "close" });
  }

  #send(header: Readonly<Record<string, unknown>>, pieces?: readonly Uint8Array[]): void {
    if (this.#pipe === undefined || this.#pipe.destroyed || this.#isBroken) return;
    writeFrame(this.#pipe, header, pieces);
  }

  #break(what: string): void {
    this.#isBroken = true;
    this.#events.broken(new Error(`the worker violated the protocol: it sent ${what}`));
  }

  #receive(frame: Frame): void {
    if (this.#isBroken) return;
    this.#isSilent = false;
    const { header } = frame;
    switch (header.type) {
      case "log":
        return this.#log(header);
      case "warming":
        if (this.#declaration === undefined) return this.#emit(Kind.warming);
        break;
      case "ready":
        if (this.#declaration === undefined) return this.#ready(header);
        break;
      case "failed":
        if (this.#declaration === undefined)
          return this.#emit(Kind.loadFailed, {}, () => [workerError(header["error"])]);
        return this.#settled(Kind.failure, frame, () => () => [workerError(header["error"])]);
      case "answer":
        if (this.#declaration !== undefined) return this.#answered(frame, this.#declaration);
        break;
      case "result":
        if (this.#declaration !== undefined) return this.#result(frame, this.#declaration);
        break;
      case "closed":
        return this.#events.closed();
      default:
    }
    this.#break(`${describe(header.type)} out of order`);
  }

  #log({ level, message }: Frame["header"]): void {
    const known = levels.find((each) => each === level) ?? "info";
    this.#events.log(known, typeof message === "string" ? message.slice(0, longestLog) : describe(message));
  }

  #ready(header: Frame["header"]): void {
    try {
      this.#declaration = this.#declared.accept(header);
    } catch (error) {
      this.#isBroken = true;
      this.#emit(Kind.loadFailed, {}, () => [error]);
      return this.#events.broken(error as Error);
    }
    this.#emit(Kind.ready);
  }

  #answered(frame: Frame, { outputs }: WorkerDeclaration): void {
    const { id, open } = this.#next(frame);
    const { places, values } = open.answered(outputs, frame);
    let read: unknown[] | undefined;
    for (const [i, place] of places.entries())
      this.#emit(Kind.answer, { id, value: place }, (ownership) => [(read ??= values(ownership))[i]]);
  }

  #result(frame: Frame, { outputs }: WorkerDeclaration): void {
    this.#settled(Kind.results, frame, (open) => open.ended(outputs, frame));
  }

  #settled(kind: number, frame: Frame, valuesOf: (open: OpenItems) => Received["values"]): void {
    const { runMs, memoryBytes } = frame.header;
    const { id, open } = this.#next(frame);
    this.#outstanding.shift();
    this.#emit(kind, { id, value: numberOr0(runMs), memoryBytes: numberOr0(memoryBytes) }, valuesOf(open));
  }

  /** The batch that runs: results come in the order of the batches. @throws {Error} the message is about another. */
  #next({ header: { type, id } }: Frame): { readonly id: number; readonly open: OpenItems } {
    const next = this.#outstanding[0];
    if (next === undefined || next.id !== id)
      throw new Error(`${type} of batch ${describe(id)} where ${next?.id ?? "none"} was next`);
    return next;
  }

  #emit(
    kind: number,
    numbers: Partial<Pick<Received, "id" | "value" | "memoryBytes">> = {},
    values: Received["values"] = () => [],
  ): void {
    this.#events.message({ kind, id: 0, value: 0, memoryBytes: 0, ...numbers, values });
  }
}

const numberOr0 = (value: unknown): number => (typeof value === "number" && value >= 0 && value < Infinity ? value : 0);
