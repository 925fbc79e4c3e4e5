import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import {
  natsFrontEnd,
  natsWorker,
  type NatsFrontEnd,
  type NatsFrontEndOptions,
  type NatsWorker,
  type NatsWorkerOptions,
} from "../../../dist/adapters/nats/index.js";
import type { NatsQueueOptions } from "../../../dist/internal/nats.js";
import {
  createBatcher,
  type Batcher,
  type BatcherOptions,
  type BatchFunction,
  type Executor,
} from "../../../dist/index.js";
import { startNats, whyNoNats, type RunningNats } from "../../../../../test/support/nats-server.mjs";

/** Why these tests do not run here; where CI=true that throws instead. */
export const skip: string | false = whyNoNats() ?? false;

/** Options of a test that needs the NATS server. */
export const needsNats = { skip };

export const double = (items: number[]): number[] => items.map((item) => item * 2);

type Own = Pick<NatsWorkerOptions, "version" | "isIsolated">;
type Shared = Omit<NatsQueueOptions, "connection" | "headers" | "queue">;

/** Options of a worker that are not its batcher's. */
const sharedOptions: ReadonlySet<string> = new Set([
  "durability",
  "maxQueueBytes",
  "maxAgeMs",
  "ackWaitMs",
  "maxDeliver",
  "replicas",
  "serves",
  "version",
  "isIsolated",
  "onWarning",
  "codec",
  "inboxPrefix",
] satisfies (keyof Shared | keyof Own)[]);

/** A server for one test file, and front ends and workers that are ended after each test. */
export class Rig {
  nats!: RunningNats;
  readonly #ends: (() => Promise<unknown>)[] = [];
  #queue = 0;
  #operator: NatsConnection | undefined;

  constructor() {
    before(async () => {
      if (skip === false) this.nats = await startNats();
    });
    after(() => this.nats?.stop());
    afterEach(() => this.end());
  }

  /** A queue that no other test uses. */
  newQueue(): string {
    return `test ${++this.#queue}.x`;
  }

  async connect(): Promise<NatsConnection> {
    const connection = await connect({
      servers: this.nats.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      reconnectJitter: 10,
    });
    this.#ends.push(() => connection.close());
    return connection;
  }

  async frontEnd<In, Out>(
    queue: string,
    options: Shared & Partial<NatsFrontEndOptions<In>> = {},
  ): Promise<NatsFrontEnd<In, Out>> {
    const { connection = await this.connect() } = options;
    const frontEnd = natsFrontEnd<In, Out>({ headers, queue, ...options, connection });
    this.#ends.push(() => frontEnd.close({ graceMs: 0 }));
    return frontEnd;
  }

  async worker<In, Out>(
    queue: string,
    run: BatchFunction<In, Out> | Executor<In, Out>,
    options: Shared & Own & BatcherOptions<In, Out> = {},
  ): Promise<{ readonly worker: NatsWorker; readonly connection: NatsConnection }> {
    const isShared = ([name]: [string, unknown]): boolean => sharedOptions.has(name);
    const entries = Object.entries(options);
    const shared = Object.fromEntries(entries.filter(isShared)) as Shared & Own;
    const own = Object.fromEntries(entries.filter((entry) => !isShared(entry))) as BatcherOptions<In, Out>;
    const { maxQueueSize, clock } = own as Shared;
    const concurrency = typeof run === "function" ? 1 : run.slots;
    const batcher = createBatcher<In, Out>(run, { concurrency, ...own, name: queue });
    const served = await this.serve(queue, batcher, { ...shared, maxQueueSize, clock });
    await served.worker.ready();
    return served;
  }

  /** A worker over that batcher. */
  async serve<In, Out>(
    queue: string,
    batcher: Batcher<In, Out>,
    options: Shared & Own & { readonly connection?: NatsConnection } = {},
  ): Promise<{ readonly worker: NatsWorker; readonly connection: NatsConnection }> {
    const { connection = await this.connect() } = options;
    const worker = natsWorker(batcher, { headers, queue, ...options, connection });
    this.#ends.push(async () => {
      await worker.drain({ graceMs: 0 });
      await batcher.close({ graceMs: 0 });
    });
    return { worker, connection };
  }

  /** A front end and a worker of one new queue, both ready. The worker shares the front end's options of the queue. */
  async pair<In, Out>(
    run: BatchFunction<In, Out> | Executor<In, Out>,
    front: Shared & Partial<NatsFrontEndOptions<In>> = {},
    options: Shared & Own & BatcherOptions<In, Out> = {},
  ) {
    const queue = this.newQueue();
    const entries = Object.entries(front).filter(([name]) => sharedOptions.has(name) && name !== "onWarning");
    const frontEnd = await this.frontEnd<In, Out>(queue, front);
    const { worker, connection } = await this.worker(queue, run, { ...Object.fromEntries(entries), ...options });
    await frontEnd.ready();
    return { queue, front: frontEnd, worker, connection };
  }

  /** The numbers of the queue's dead letters. */
  async deadLetters(queue: string): Promise<string[]> {
    const stream = `SHEAF_${tokenOf(queue)}_DLQ`;
    const { state } = await this.api(`STREAM.INFO.${stream}`);
    const letters: string[] = [];
    for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq++) {
      const { message } = await this.api(`STREAM.MSG.GET.${stream}`, { seq });
      letters.push(/Sheaf-Sequence: (\d+)/.exec(atob(message.hdrs))![1]!);
    }
    return letters;
  }

  /** A call of the JetStream API, as an operator's tool makes it. */
  async api(call: string, body: object = {}): Promise<any> {
    this.#operator ??= await connect({ servers: this.nats.url, maxReconnectAttempts: -1 });
    return (await this.#operator.request(`$JS.API.${call}`, JSON.stringify(body), { timeout: 20_000 })).json();
  }

  async end(): Promise<void> {
    await this.#operator?.close();
    this.#operator = undefined;
    for (const end of this.#ends.splice(0).reverse()) await end();
  }
}

/** As a queue's name stands in its subjects and in the names of its streams. */
export const tokenOf = (queue: string): string =>
  queue.replaceAll(/[^A-Za-z0-9-]/g, (char) => `_${char.codePointAt(0)!.toString(16)}_`);

/** Waits until it holds; what it waits for must come. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let i = 0; i < 6000; i++) {
    if (await soFar(holds)) return;
    await sleep(10);
  }
  assert.fail(`never: ${what}`);
}

/** A pause of the machine may cost a request to NATS its answer: that is not known so far. */
async function soFar(holds: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return await holds();
  } catch (error) {
    if ((error as { code?: unknown }).code === "UNAVAILABLE") return false;
    throw error;
  }
}

/** Items in the queue, waiting or at a worker, of calls without a priority. */
export async function waiting({ figures }: Pick<NatsFrontEnd<never, unknown>, "figures">): Promise<number> {
  const [, { pending, ackPending }] = (await figures()) as [unknown, { pending: number; ackPending: number }];
  return pending + ackPending;
}

/** As a stopped process: the connection stands and nothing comes, until the returned function is called. */
export function mute(connection: NatsConnection): () => void {
  const publish = connection.publish.bind(connection);
  connection.publish = () => undefined;
  return () => void (connection.publish = publish);
}

/** Lets `answer` take requests over `connection`; those for which it gives undefined go to the server. */
export function intercept(connection: NatsConnection, answer: (subject: string) => Promise<never> | undefined): void {
  const request = connection.request.bind(connection);
  connection.request = (...call: Parameters<typeof request>) => answer(call[0]) ?? request(...call);
}

/** The whole numbers from 0 on, and what `double` makes of them. */
export const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
export const doubled = (count: number): number[] => double(numbers(count));

/** A batch function that the test lets go on. */
export class Gate {
  readonly entered: unknown[][] = [];
  #isOpen = false;
  #waiting: (() => void)[] = [];

  readonly run = async (items: number[]): Promise<number[]> => {
    this.entered.push(items);
    if (!this.#isOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return items.map((item) => item * 2);
  };

  open(): void {
    this.#isOpen = true;
    for (const go of this.#waiting.splice(0)) go();
  }
}
