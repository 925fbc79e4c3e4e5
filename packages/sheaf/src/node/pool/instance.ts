import { invariant } from "../../core/runtime/warnings.ts";
import type { BaseRunHandle } from "../../core/contract/base-run-handle.ts";
import { openOrEnd, type OpenConnection, type WorkerConnection, type WorkerConnectionEvents } from "./connection.ts";
import type { InstanceInfo, InstanceRole, InstanceState } from "../contract/worker-executor.ts";
import { Kind } from "../wire/message.ts";
import type { RowOwnership } from "../wire/pack.ts";
import type { Received } from "../wire/received.ts";

/** One batch on its way through a pool. Settled once, by its current holder. */
export interface Job {
  readonly items: readonly unknown[];
  readonly handle: BaseRunHandle;
  readonly attempt: number;
  resolve(results: unknown[]): void;
  reject(error: unknown): void;
}

interface Held {
  readonly id: number;
  readonly run: Job;
  /** The early answers of its items, by index. */
  answers: Map<number, unknown> | undefined;
}

export interface InstanceOptions {
  readonly open: OpenConnection;
  readonly resultRows: RowOwnership;
}

export interface InstanceEvents {
  /** The state changed, or there is room for another batch. */
  changed(instance: Instance): void;
  /** It ended. `lost`: the batches it had not answered, the running one first. */
  ended(instance: Instance, lost: readonly Job[], why: string, error: Error | undefined): void;
  /** It was not ready in time and cannot be stopped: it is abandoned, and `ended` follows when it ends. */
  left(instance: Instance, error: Error): void;
}

/** Batches of all instances that have begun. */
let starts = 0;

/** One worker and the batches it holds; they run in the order they were given. */
export class Instance {
  readonly id: number;
  role: InstanceRole;
  state: InstanceState = "starting";
  batches = 0;
  /** When its running batch began, as its place among all starts: the lowest has run for longest. */
  startedAs = 0;
  loaded = false;
  draining = false;
  memoryBytes = 0;
  /** Set when `load` or `warmUp` failed. */
  loadError: Error | undefined;
  /** Resolves when its thread or process has ended. */
  readonly whenDead: Promise<void>;
  #dead: (() => void) | undefined;
  readonly #resultRows: RowOwnership;
  readonly #connection: WorkerConnection;
  readonly #events: InstanceEvents;
  #jobs: Held[] = [];
  #nextRunId = 1;
  #killed = false;

  constructor(id: number, index: number, role: InstanceRole, options: InstanceOptions, events: InstanceEvents) {
    this.id = id;
    this.role = role;
    this.#events = events;
    this.#resultRows = options.resultRows;
    this.whenDead = new Promise((resolve) => (this.#dead = resolve));
    const connectionEvents: WorkerConnectionEvents = {
      message: (received) => this.#receive(received),
      ended: (why, error) => this.#ended(why, error),
    };
    this.#connection = openOrEnd(options.open, connectionEvents, index);
  }

  /** Batches it holds: the running one and prefetched ones. */
  get outstanding(): number {
    return this.#jobs.length;
  }

  get serves(): boolean {
    return !this.#killed && (this.state === "ready" || this.state === "busy");
  }

  get info(): InstanceInfo {
    const { id, state, role, batches, memoryBytes } = this;
    return { id, state, role, pid: this.#connection.pid, batches, memoryBytes };
  }

  /** Hands over a batch; one that cannot be packed is rejected and leaves the instance as it was. */
  run(run: Job): void {
    invariant(this.serves, "a batch goes to an instance that serves");
    const id = this.#nextRunId++;
    // Sent before listeners are called: one may hand over the next batch.
    try {
      this.#connection.run(id, run.attempt, run.items);
    } catch (error) {
      run.reject(error);
      return;
    }
    this.#jobs.push({ id, run, answers: undefined });
    if (this.#jobs.length === 1) {
      this.#begins(run);
      this.#connection.hold(true);
      this.#become("busy");
    }
  }

  #begins(run: Job): void {
    this.startedAs = ++starts;
    run.handle.started();
  }

  abort(run: Job): void {
    const held = this.#jobs.find((candidate) => candidate.run === run);
    if (held !== undefined) this.#connection.abort(held.id);
  }

  holds(run: Job): boolean {
    return this.#jobs.some((held) => held.run === run);
  }

  /** Whether this batch is the one that runs; the others wait for it. */
  isRunning(run: Job): boolean {
    return this.#jobs[0]?.run === run;
  }

  /** Takes back every batch: its answers are ignored from now on. */
  reclaim(): Job[] {
    const runs = this.#jobs.map(({ run }) => run);
    for (const { id } of this.#jobs) this.#connection.abort(id);
    this.#jobs = [];
    return runs;
  }

  /** Finishes its batches, unloads and ends. */
  drain(): void {
    if (this.draining || this.state === "dead") return;
    this.draining = true;
    this.#become("draining");
    this.#connection.close();
  }

  /** Ends it at once. False where that cannot be done safely. */
  kill(): boolean {
    this.#killed = this.#connection.kill();
    return this.#killed;
  }

  /** Lets this process end while the worker is still there. */
  unref(): void {
    this.#connection.hold(false);
  }

  #receive(received: Received): void {
    switch (received.kind) {
      case Kind.warming:
        return this.#become("warming");
      case Kind.ready:
        if (this.draining) return;
        this.loaded = true;
        this.#connection.hold(false);
        return this.#become("ready");
      case Kind.loadFailed:
        this.loadError = received.values("own")[0] as Error;
        return;
      case Kind.answer:
        return this.#answerOne(received);
      case Kind.results:
      case Kind.failure:
        return this.#answer(received);
      default:
        invariant(false, `unknown message kind ${received.kind}`);
    }
  }

  #answerOne(received: Received): void {
    const { id, value: index } = received;
    const held = this.#jobs[0];
    if (held?.id !== id) return; // taken back in the meantime
    let answer: unknown;
    try {
      [answer] = received.values(this.#resultRows);
    } catch (error) {
      answer = error; // nested too deep for the stack here
    }
    (held.answers ??= new Map()).set(index, answer);
    held.run.handle.deliver(index, answer);
  }

  #answer(received: Received): void {
    const { kind, id, value: runMs, memoryBytes } = received;
    const held = this.#jobs[0];
    // Taken back in the meantime.
    if (held === undefined) return;
    invariant(held.id === id, "a worker answers in the order it was asked");
    this.#jobs.shift();
    if (this.#jobs[0] !== undefined) this.#begins(this.#jobs[0].run);
    this.batches++;
    if (memoryBytes > 0) this.memoryBytes = memoryBytes;
    held.run.handle.measured(runMs);
    if (kind === Kind.failure) {
      held.run.reject(received.values("own")[0]);
    } else {
      this.#resolve(held, received);
    }
    if (this.#jobs.length === 0 && this.state === "busy") {
      this.#connection.hold(false);
      this.#become("ready");
    } else {
      this.#events.changed(this);
    }
  }

  /** A value that a worker could pack may be nested too deep for the stack here, which is smaller than a worker thread's. */
  #resolve({ run, answers }: Held, received: Received): void {
    let results: unknown[];
    try {
      results = received.values(this.#resultRows);
    } catch (error) {
      return run.reject(error);
    }
    run.resolve(answers === undefined ? results : withAnswers(run.items.length, answers, results));
  }

  #become(state: InstanceState): void {
    if (this.state === "dead" || (this.draining && state !== "draining")) return;
    this.state = state;
    this.#events.changed(this);
  }

  #ended(why: string, error: Error | undefined): void {
    const lost = this.#jobs.map(({ run }) => run);
    this.#jobs = [];
    // It runs again or ends; until then it waits, and that time does not count.
    lost[0]?.handle.stopped();
    this.state = "dead";
    this.#dead?.();
    this.#events.ended(this, lost, why, error);
  }
}

/** All results of a batch: its early answers, and those of the other items, which came together in their order. */
function withAnswers(size: number, answers: ReadonlyMap<number, unknown>, others: readonly unknown[]): unknown[] {
  let next = 0;
  return Array.from({ length: size }, (_, index) => (answers.has(index) ? answers.get(index) : others[next++]));
}
