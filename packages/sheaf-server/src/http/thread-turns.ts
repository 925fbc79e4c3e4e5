import type { FastifyInstance, FastifyRequest } from "fastify";
import { clientClosedRequest, Problem, retryIn } from "../problems/problem.ts";
import { costs } from "../shared/costs.ts";
import { callerOf } from "./check-callers.ts";

interface Waiting {
  readonly account: object;
  run(): void;
}

/** The clock and the event loop, which tests replace. */
interface Loop {
  now(): number;
  /** After what has arrived meanwhile. */
  soon(next: () => void): void;
  after(ms: number, next: () => void): void;
}

const nodeLoop: Loop = {
  now: () => performance.now(),
  soon: (next) => void setImmediate(next),
  after: (ms, next) => void setTimeout(next, ms),
};

/**
 * Lets large bodies, and the pieces of large replies, take turns on the one thread that reads requests and writes replies. The
 * account that has used the least time goes next, one turn of the event loop each. After a long turn the thread is left to other
 * requests for a while, if any are open.
 */
export class ThreadTurns {
  open = 0;
  readonly #waiting: Waiting[] = [];
  /** When an account's next turn would begin if it had the thread to itself. Idle accounts save up nothing. */
  readonly #nextAtMs = new WeakMap<object, number>();
  readonly #loop: Loop;
  #turnAtMs = 0;
  #isTaken = false;

  constructor(loop: Loop = nodeLoop) {
    this.#loop = loop;
  }

  /** Does `work` when it is the turn of `account`; at once if nobody else waits. */
  run<T>(account: object, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = (): void => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      };
      this.#waiting.push({ account, run });
      if (!this.#isTaken) this.#next();
    });
  }

  /** Whether one more body of an account may wait. */
  hasRoom(account: object): boolean {
    const own = this.#waiting.filter((one) => one.account === account).length;
    return own < costs.largeBodiesWaiting && this.#waiting.length < costs.largeBodiesWaitingInAll;
  }

  #next(): void {
    const first = this.#waiting.reduce((least, one) => (this.#startOf(one) < this.#startOf(least) ? one : least));
    this.#waiting.splice(this.#waiting.indexOf(first), 1);
    this.#isTaken = true;
    this.#turnAtMs = this.#startOf(first);
    const startedAtMs = this.#loop.now();
    first.run();
    // Runs after the work that the turn started, such as packing items for a worker.
    this.#loop.soon(() => {
      const tookMs = Math.min(costs.longestTurnMs, this.#loop.now() - startedAtMs);
      this.#nextAtMs.set(first.account, this.#turnAtMs + tookMs);
      const isDisturbing = tookMs > costs.shortTurnMs && this.open > this.#waiting.length;
      if (isDisturbing) this.#loop.after(costs.restAfterTurn * tookMs, () => this.#ended());
      else this.#ended();
    });
  }

  #ended(): void {
    this.#isTaken = false;
    if (this.#waiting.length > 0) this.#next();
  }

  #startOf({ account }: Waiting): number {
    return Math.max(this.#turnAtMs, this.#nextAtMs.get(account) ?? 0);
  }
}

export const threadTurns: ThreadTurns = new ThreadTurns();

/** Makes large bodies wait for their turn before they are read. */
export function readInTurns(app: FastifyInstance): void {
  app.addHook("preValidation", (request, _reply, done) => {
    const { body } = request;
    if (!Buffer.isBuffer(body) || body.length < costs.largeBytes) return done();
    const account = accountOf(request);
    if (!threadTurns.hasRoom(account)) return done(tooManyBodies());
    void threadTurns.run(account, () => done(request.raw.socket.destroyed ? clientClosedRequest() : undefined));
  });
}

export const tooManyBodies = (): Problem =>
  new Problem(
    "QUEUE_FULL",
    `Too many requests of ${costs.largeBytes} bytes and more wait to be read. Retry in 1000 ms.`,
    {
      headers: retryIn(1000),
    },
  );

/** Who pays for a request: its tenant, or its connection if callers are not told apart. */
export const accountOf = (request: FastifyRequest): object => callerOf(request)?.tenant ?? request.raw.socket;
