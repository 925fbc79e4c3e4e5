import { describe } from "../../../shared/describe.ts";
import { startCommand, type CommandChild } from "../child.ts";
import type { Command } from "../options.ts";
import { readDeclaration, type WorkerDeclaration } from "../declaration.ts";
import { encodeItems } from "../encode.ts";
import { FrameReader, writeFrame, type Frame } from "../frame.ts";
import { OpenItems } from "../open-items.ts";
import { OutputLines } from "../output-lines.ts";
import { workerError } from "../worker-error.ts";

export interface CheckedCommand extends Command {
  readonly data: unknown;
  readonly loadTimeoutMs: number;
  /** How long anything else may take. */
  readonly patienceMs: number;
}

const maxCloseMs = 1000;

type Header = Readonly<Record<string, unknown>>;

/** A worker that is spoken to by hand, message by message, also with messages that are wrong. */
export class CheckedWorker {
  declaration: WorkerDeclaration | undefined;
  readonly #command: CheckedCommand;
  readonly #started: CommandChild;
  readonly #lines: OutputLines = new OutputLines(() => undefined);
  readonly #frames: Frame[] = [];
  readonly #closed: Promise<unknown>;
  #hasEnded = false;
  #fault: Error | undefined;
  #arrived: (() => void) | undefined;

  constructor(command: CheckedCommand) {
    this.#command = command;
    this.#started = startCommand(command, 0);
    const { child, pipe, output } = this.#started;
    for (const stream of output) this.#lines.read(stream);
    const reader = new FrameReader((frame) => {
      if (frame.header.type !== "log") this.#frames.push(frame);
    });
    pipe?.on("data", (chunk: Buffer) => {
      try {
        if (this.#fault === undefined) reader.push(chunk);
      } catch (error) {
        this.#fault = error as Error;
      }
      this.#arrived?.();
    });
    pipe?.on("error", () => undefined);
    this.#closed = new Promise((resolve) => {
      // By `close` all that it printed has been read, unless a program that it started holds its pipes open.
      child.on("close", resolve);
      child.on("exit", () => setTimeout(resolve, maxCloseMs).unref());
      child.on("error", (error) => {
        this.#fault = error;
        resolve(undefined);
      });
    });
    void this.#closed.then(() => {
      this.#hasEnded = true;
      setImmediate(() => this.#arrived?.()); // after its last message
    });
  }

  get pid(): number | undefined {
    return this.#started.child.pid;
  }

  /** How long anything may take before it is ready: it may still be importing, and not read yet. */
  get loadTimeoutMs(): number {
    return this.#command.loadTimeoutMs;
  }

  send(header: Header, pieces?: readonly Uint8Array[]): void {
    const { pipe } = this.#started;
    if (pipe?.writable === true) writeFrame(pipe, header, pieces);
  }

  /** Bytes as they are. */
  write(bytes: Uint8Array): void {
    const { pipe } = this.#started;
    if (pipe?.writable === true) pipe.write(bytes);
  }

  hello(protocol: number = 1): void {
    this.send({ type: "hello", protocol, data: this.#command.data ?? null });
  }

  /** Says hello and waits until it can run batches. */
  async ready(): Promise<WorkerDeclaration> {
    this.hello();
    const { header } = await this.next(this.#command.loadTimeoutMs);
    if (header.type === "warming") return this.#readyAfterWarming();
    return this.#declare(header);
  }

  async #readyAfterWarming(): Promise<WorkerDeclaration> {
    return this.#declare((await this.next(this.#command.loadTimeoutMs)).header);
  }

  #declare(header: Frame["header"]): WorkerDeclaration {
    if (header.type === "failed") {
      const { name, message, place } = workerError(header["error"]) as Error & { place?: string };
      throw new Error(`it cannot load: ${name}: ${message}${place === undefined ? "" : ` (${place})`}`);
    }
    if (header.type !== "ready") throw new Error(`it sent ${describe(header.type)} instead of "ready"`);
    return (this.declaration = readDeclaration(header));
  }

  run(id: number, items: readonly unknown[], extra: Header = {}): void {
    const { columns, pieces } = encodeItems(this.declaration!.inputs, items);
    this.send({ type: "run", id, size: items.length, attempt: 1, columns, ...extra }, pieces);
  }

  /** The results of the batch `id` of `size` items, from the messages that come next; undefined where the run failed. */
  async resultsOf(id: number, size: number): Promise<unknown[] | undefined> {
    const { outputs } = this.declaration!;
    const open = new OpenItems(size);
    const results: unknown[] = [];
    let frame = await this.#nextOf(id);
    for (; frame.header.type === "answer"; frame = await this.#nextOf(id)) {
      const { places, values } = open.answered(outputs, frame);
      for (const [i, value] of values("view").entries()) results[places[i]!] = value;
    }
    if (frame.header.type === "failed") return undefined;
    const { places } = open;
    for (const [i, value] of open.ended(outputs, frame)("view").entries()) results[places?.[i] ?? i] = value;
    return results;
  }

  async #nextOf(id: number): Promise<Frame> {
    const frame = await this.next();
    const { type } = frame.header;
    if (type !== "answer" && type !== "result" && type !== "failed")
      throw new Error(`it sent ${describe(type)} instead of the answer to batch ${id}`);
    if (frame.header["id"] !== id)
      throw new Error(`it answered batch ${describe(frame.header["id"])} instead of ${id}`);
    return frame;
  }

  /** The next message that is not of the log. */
  async next(timeoutMs: number = this.#command.patienceMs): Promise<Frame> {
    await this.#until(() => this.#frames.length > 0 || this.#hasEnded || this.#fault !== undefined, timeoutMs);
    const frame = this.#frames.shift();
    if (frame !== undefined) return frame;
    if (this.#fault !== undefined) throw new Error(`it sent ${this.#fault.message}`);
    const words = this.#lines.lastWords ?? this.#lines.lastLine;
    throw new Error(
      this.#hasEnded
        ? `it ended (${this.#end()})${words === undefined ? "" : `: ${words}`}`
        : `it sent nothing within ${timeoutMs} ms`,
    );
  }

  /** Resolves once it has ended. Messages until then are dropped. */
  async ended(timeoutMs: number = this.#command.patienceMs): Promise<void> {
    await this.#until(() => this.#hasEnded, timeoutMs);
    if (!this.#hasEnded) throw new Error(`it still runs after ${timeoutMs} ms`);
  }

  get exitCode(): number | null {
    return this.#started.child.exitCode;
  }

  /** Closes our end of the socket, as the end of this process would. */
  hangUp(): void {
    this.#started.pipe?.destroy();
  }

  async kill(): Promise<void> {
    this.#started.kill();
    await this.#closed;
    this.hangUp();
  }

  #end(): string {
    const { exitCode, signalCode } = this.#started.child;
    return signalCode === null ? `exit code ${exitCode}` : `signal ${signalCode}`;
  }

  async #until(holds: () => boolean, timeoutMs: number): Promise<void> {
    let isLate = false;
    const timer = setTimeout(
      () => {
        isLate = true;
        this.#arrived?.();
      },
      Math.min(timeoutMs, 2 ** 31 - 1),
    );
    while (!holds() && !isLate) await new Promise<void>((resolve) => (this.#arrived = resolve));
    clearTimeout(timer);
  }
}
